"""Which observations of a conversation stay, counted anew for each message: nothing shared with the package."""

from __future__ import annotations

from collections.abc import Sequence

Turn = tuple[str, str, bool]
"""Role, text, and whether there is a picture."""


def webvoyager(turns: Sequence[Turn], keep: int, counted: str, note: str) -> list[Turn]:
    def counts(turn: Turn) -> bool:
        role, text, has_picture = turn
        return (
            role == "user" and {"pictures": has_picture, "all": True, "observations": "Observation:" in text}[counted]
        )

    out = []
    for at, (role, text, has_picture) in enumerate(turns):
        if counts(turns[at]) and sum(map(counts, turns[at:])) > keep:
            found = text.find("Observation:")
            out.append((role, (text if found < 0 else text[:found]).strip() + note, False))
        else:
            out.append((role, text, has_picture))
    return out


def openwebvoyager(turns: Sequence[Turn], keep: int, with_picture: str, without: str) -> list[Turn]:
    out = []
    for at, (role, text, has_picture) in enumerate(turns):
        newer = sum(turn[0] == "user" for turn in turns[at + 1 :])
        lines = text.split("\n")
        begin = next((n for n, line in enumerate(lines) if line.startswith("OBSERVATION:")), len(lines))
        if role != "user":
            out.append((role, text, has_picture))
        elif newer:
            note = with_picture if newer < keep else without
            out.append((role, "\n".join([*lines[:begin], note]), has_picture and newer < keep))
        else:
            cut = [line if line.count(" ") < 500 else " ".join(line.split()[:500]) for line in lines[begin + 1 :]]
            out.append((role, "\n".join([*lines[: begin + 1], *cut]), has_picture))
    return out
