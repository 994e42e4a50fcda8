"""Learning to match before learning what is right: which tokens of a pair stand in the other text too?

Every token of every pair gives an answer, so this takes a few hundred gradient steps where the ranking itself, with one
answer a group, never gets to it: left alone a model from scratch learns the words of the pages it was shown by heart
(the measurements are in docs/log.md). The token swap hides which words they are, so nothing else can be learnt here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ranker.heads import MATCH, head
from ranker.pairs import PairEncoder, PairGroup, TokenSwap
from ranker.training_pass import run

if TYPE_CHECKING:
    from ranker.cross_encoder import Row
    from ranker.training import TrainingSettings

GROUPS, TEXTS, PARTS = 16, 8, 3
# of a gradient step: groups, texts of each, and parts by length that go through the model one after the other
PLANTED = 0.1
# share of a text's tokens that one of the query's takes the place of: few pairs share enough by themselves
WARMUP = 30
TOLD_EVERY = 50


def shared_tokens(rows: Sequence[Row], encoder: PairEncoder) -> Any:
    """Shape (rows, longest): 1 where the other text has the token too, 0 where not, -1 outside both texts."""
    import torch

    found = torch.full((len(rows), max(len(row.ids) for row in rows)), -1.0)
    for place, row in enumerate(rows):
        special = encoder.is_special(row)
        texts = [i for i, framed in enumerate(special) if not framed]
        first, second = texts[: row.split], texts[row.split :]
        for mine, other in ((first, second), (second, first)):
            ids = {row.ids[i] for i in other}
            found[place, mine] = torch.tensor([float(row.ids[i] in ids) for i in mine])
    return found


def matching_loss(model: Any, tokens: Any, shared: Any) -> Any:
    """One number. `tokens`: see `training_pass.Passed`, so that the last layer can make use of it; `shared`: see `shared_tokens`."""
    from torch.nn import functional

    logits = head(model, MATCH)(tokens)[..., 0].float()
    counted = (shared >= 0).float()
    losses = functional.binary_cross_entropy_with_logits(logits, shared.clamp(min=0), reduction="none")
    return (losses * counted).sum() / counted.sum()


def teach_matching(
    model: Any,
    encoder: PairEncoder,
    groups: Sequence[PairGroup],
    swap: TokenSwap | None,
    settings: TrainingSettings,
    tell: Callable[[str], None],
) -> None:
    """`settings.matching_steps` gradient steps of AdamW, warmed up and then falling to a tenth."""
    import torch

    chance, device = random.Random(f"{settings.seed}/matching"), model.device
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=settings.weight_decay, betas=(0.9, settings.beta2))
    model.train()
    for step in range(settings.matching_steps):
        rows = sorted(_draw(groups, encoder, swap, chance), key=lambda row: -len(row.ids))
        bounds = [round(len(rows) * part / PARTS) for part in range(PARTS + 1)]
        losses = [_descend(model, encoder, rows[start:stop], device, settings.bf16) for start, stop in pairwise(bounds)]
        for group in optimizer.param_groups:
            group["lr"] = (
                settings.matching_rate * min(1, (step + 1) / WARMUP) * (1 - 0.9 * step / settings.matching_steps)
            )
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % TOLD_EVERY == 0:
            tell(f"matching, step {step + 1} of {settings.matching_steps}: loss {sum(losses):.4g}")


def _draw(
    groups: Sequence[PairGroup], encoder: PairEncoder, swap: TokenSwap | None, chance: random.Random
) -> list[Row]:
    rows = []
    for _ in range(GROUPS):
        group = chance.choice(groups)
        texts = sorted(set(group.texts))
        disguise = swap.disguise(chance.getrandbits(32)) if swap else None
        for text in chance.sample(texts, min(TEXTS, len(texts))):
            planted = _plant(encoder.ids(text)[: encoder.room(group.query)], encoder.ids(group.query), chance)
            rows.append(encoder.row_of_ids(encoder.ids(group.query), planted, disguise))
    return rows


def _plant(ids: Sequence[int], query: Sequence[int], chance: random.Random) -> list[int]:
    return [chance.choice(query) if chance.random() < PLANTED else i for i in ids]


def _descend(model: Any, encoder: PairEncoder, rows: Sequence[Row], device: Any, bf16: bool) -> float:
    import torch

    part = {name: tensor.to(device) for name, tensor in encoder.tensors(rows).items()}
    shared = shared_tokens(rows, encoder).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        tokens = run(model, part, bf16).tokens
    loss = matching_loss(model, tokens, shared) / PARTS
    loss.backward()
    return float(loss.detach())
