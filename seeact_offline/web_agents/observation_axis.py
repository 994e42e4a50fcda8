"""The axis along which `ablate` varies a web agent's observation."""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.records import InputError
from seeact_offline.runs.ablate import OptionAxis, Variant
from seeact_offline.runs.config import EvalConfig

OBSERVER = "visualwebarena"
"""The web agent that has several observations."""


def observation_variants(config: EvalConfig, observations: Sequence[str] = ()) -> list[Variant]:
    """OBSERVER with each of these observations, or all. Captions, from a file or a model, go to those that show
    captions. Raises InputError where none does."""
    observations = observations or OBSERVATION.choices
    captions = ("captions", "captions_base_url")
    option = next((name for name in captions if config.own(name) is not None), None)
    if option and not any("captions" in observation for observation in observations):
        raise InputError(option, sentence=f"`{option}` needs an observation that shows captions, such as tree+captions")
    return [
        Variant(
            observation,
            {
                "agent": OBSERVER,
                "observation": observation,
                **{name: config.own(name) if "captions" in observation else None for name in captions},
            },
        )
        for observation in observations
    ]


OBSERVATION = OptionAxis(
    "ablate-observation",
    ("observation", "captions", "captioner", "prompts_digest"),
    ("observation", "observations"),
    "observations",
    agent=OBSERVER,
    option="observation",
    variants=observation_variants,
)
