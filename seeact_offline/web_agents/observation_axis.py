"""The axis along which `ablate` varies a web agent's observation."""

from seeact_offline.runs.ablate import Axis

OBSERVATION = Axis(
    "ablate-observation",
    ("observation", "captions", "captioner", "prompts_digest"),
    ("observation", "observations"),
)
