"""Learning to match before learning what is right: which tokens of a pair stand in the other text too, and in which of some
texts does the query turn up?

The first question has an answer for every token of every pair, so this takes a few hundred gradient steps, where the
ranking itself, with one answer a group, never gets to it: left alone a model from scratch learns the words of the pages it
was shown by heart (the measurements are in docs/log.md). The token swap hides which words they are, so nothing else can
be learnt here. It is asked of a lower layer, so that those above can make use of the answer; the second question, answered
by the classifier itself, has them do so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ranker.pairs import PairEncoder, PairGroup, TokenSwap

if TYPE_CHECKING:
    from ranker.cross_encoder import Row
    from ranker.training import TrainingSettings

HEAD = "match_head"
GROUPS, TEXTS, PARTS = 16, 8, 3
# of a gradient step: groups, texts of each, and parts by length that go through the model one after the other
PLANTED, NOISY = 0.1, 0.15
# share of a noisy text's tokens that one of the query's takes the place of, and share of noisy texts
FOUND_IN = 2
# at most so many tokens of the query are planted in the text of a group where it is said to turn up
FOUND_WEIGHT = 0.5
# of the second question's loss
WARMUP = 30
TOLD_EVERY = 50


class Scored(NamedTuple):
    """What one pass gives."""

    logits: Any
    """Shape (rows,)."""
    loss: Any
    """Of matching; one number."""


def add_match_head(model: Any) -> None:
    """A linear layer on each token, kept with the model while it trains, so that checkpoints hold it."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    head = torch.nn.Linear(model.config.hidden_size, 1).to(model.device)
    setattr(model, HEAD, head)
    # the head is no part of the model's own forward pass, so several processes do not wait for its gradients
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
        model, [f"{HEAD}.{name}" for name, _ in head.named_parameters()]
    )


def drop_match_head(model: Any) -> None:
    if hasattr(model, HEAD):
        delattr(model, HEAD)


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


def score_and_match(model: Any, part: dict[str, Any], shared: Any, layer: int) -> Scored:
    """`part`: the model's inputs; `shared`: see `shared_tokens`; `layer`: from 1, whose output is asked for what is shared."""
    found = model(**part, output_hidden_states=True)
    head = getattr(getattr(model, "module", model), HEAD)
    return Scored(found.logits[:, 0].float(), _loss(head(found.hidden_states[layer])[..., 0].float(), shared))


def _loss(logits: Any, shared: Any) -> Any:
    from torch.nn import functional

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
    """`settings.matching_steps` gradient steps of AdamW, warmed up and then falling to a tenth; without dropout, as nothing
    is seen twice."""
    import torch

    chance = random.Random(f"{settings.seed}/matching")
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=settings.weight_decay, betas=(0.9, settings.beta2))
    model.eval()
    for step in range(settings.matching_steps):
        question = _ask(groups, encoder, swap, chance)
        losses = _losses(model, encoder, question, settings)
        (losses.shared + FOUND_WEIGHT * losses.found).backward()
        for group in optimizer.param_groups:
            group["lr"] = (
                settings.matching_rate * min(1, (step + 1) / WARMUP) * (1 - 0.9 * step / settings.matching_steps)
            )
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % TOLD_EVERY == 0:
            tell(
                f"matching, step {step + 1} of {settings.matching_steps}: loss {float(losses.shared.detach()):.4g} of shared "
                f"tokens, {float(losses.found.detach()):.4g} of texts"
            )


class _Question(NamedTuple):
    rows: list[Row]
    """Those of one group after the other."""
    groups: list[tuple[int, int]]
    """Of each group: how many rows, and which of them has the query's tokens."""


class _Losses(NamedTuple):
    shared: Any
    found: Any


def _ask(groups: Sequence[PairGroup], encoder: PairEncoder, swap: TokenSwap | None, chance: random.Random) -> _Question:
    rows: list[Row] = []
    asked: list[tuple[int, int]] = []
    for _ in range(GROUPS):
        group = chance.choice(groups)
        known = sorted(set(group.texts))
        texts = chance.sample(known, min(TEXTS, len(known)))
        place = chance.randrange(len(texts))
        mapping = swap.mapping(chance.getrandbits(32)) if swap else None
        query, room = encoder.ids(group.query), encoder.room(group.query)
        wanted = [token for token in query if swap is None or swap.is_free(token)] or query
        for i, text in enumerate(texts):
            ids = encoder.ids(text)[:room]
            planted = _plant_last_line(encoder, text, ids, wanted, chance) if i == place else _noise(ids, query, chance)
            rows.append(encoder.row_of_ids(query, planted, mapping))
        asked.append((len(texts), place))
    return _Question(rows, asked)


def _plant_last_line(
    encoder: PairEncoder, text: str, ids: Sequence[int], wanted: Sequence[int], chance: random.Random
) -> list[int]:
    """One or more of the query's tokens in the place of some of the text's last line, after its first token."""
    start = len(ids) - len(encoder.ids(text.rpartition("\n")[2])) + 1
    places = range(min(max(start, 0), len(ids) - 1), len(ids))
    found = list(ids)
    for place in chance.sample(places, min(chance.randint(1, FOUND_IN), len(places))):
        found[place] = chance.choice(wanted)
    return found


def _noise(ids: Sequence[int], query: Sequence[int], chance: random.Random) -> list[int]:
    if chance.random() >= NOISY:
        return list(ids)
    return [chance.choice(query) if chance.random() < PLANTED else i for i in ids]


def _losses(model: Any, encoder: PairEncoder, question: _Question, settings: TrainingSettings) -> _Losses:
    """The rows go through the model in parts of about one length: less padding."""
    import torch
    from torch.nn import functional

    rows = question.rows
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place].ids))
    bounds = [round(len(rows) * part / PARTS) for part in range(PARTS + 1)]
    parts = [
        _pass(model, encoder, [rows[place] for place in order[start:stop]], settings)
        for start, stop in pairwise(bounds)
    ]
    logits = torch.cat([part.logits for part in parts])
    logits = torch.empty_like(logits).index_copy(0, torch.tensor(order, device=logits.device), logits)
    found = [
        -functional.log_softmax(scores, dim=0)[place]
        for scores, (_, place) in zip(logits.split([n for n, _ in question.groups]), question.groups, strict=True)
    ]
    return _Losses(torch.stack([part.loss for part in parts]).mean(), torch.stack(found).mean())


def _pass(model: Any, encoder: PairEncoder, rows: Sequence[Row], settings: TrainingSettings) -> Scored:
    import torch

    device = model.device
    part = {name: tensor.to(device) for name, tensor in encoder.tensors(rows).items()}
    with torch.autocast(device.type, torch.bfloat16, enabled=settings.bf16):
        return score_and_match(model, part, shared_tokens(rows, encoder).to(device), settings.matching_layer)
