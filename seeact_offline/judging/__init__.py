"""Model judges of whole trajectories: what they are asked, how their verdicts are read, and how far these agree with labels."""

from seeact_offline.judging.verdict_rules import READERS, read_verdict

__all__ = ["READERS", "read_verdict"]
