"""transformers' Trainer over groups of pairs: its loss, its evaluation by recall, its hard negatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ranker.cross_encoder import batch_bounds
from ranker.pairs import EpochPairs, PairEncoder, PairGroup
from ranker.processes import n_processes, share_out
from ranker.training_pass import run

if TYPE_CHECKING:
    from ranker.training import TrainingSettings


def make_trainer(
    model: Any,
    arguments: Any,
    pairs: EpochPairs,
    encoder: PairEncoder,
    held_out: Sequence[PairGroup],
    settings: TrainingSettings,
    tell: Callable[[str], None],
) -> Any:
    """A Trainer with one more method, `measure() -> recall@k and MRR of the held-out groups`."""
    import transformers

    from ranker.training import collate

    class GroupTrainer(transformers.Trainer):  # type: ignore[misc]
        control: Any

        def compute_loss(self, model: Any, inputs: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            return group_loss(model, inputs, settings)

        def training_step(self, model: Any, inputs: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(model, inputs, *args, **kwargs)
            if "taught" in inputs:
                _share_gradients(model)
            return loss

        def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
            super().log(logs, *args, **kwargs)
            if self.is_world_process_zero():
                tell(", ".join(f"{name} {value:.4g}" for name, value in logs.items() if isinstance(value, int | float)))

        def measure(self) -> dict[str, float]:
            return _measure(self.model, encoder, held_out, settings)

        def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            metrics = {f"eval_{name}": value for name, value in self.measure().items()}
            self.log(metrics)
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
            return metrics

    class HardNegatives(transformers.TrainerCallback):  # type: ignore[misc]
        def on_epoch_begin(self, args: Any, state: Any, control: Any, model: Any, **kwargs: Any) -> None:
            if state.epoch:
                pairs.set_hard(_hardest(model, encoder, pairs.groups, settings))

    class NewDraws(transformers.TrainerCallback):  # type: ignore[misc]
        """accelerate passes the epoch on to the data only where there is one process."""

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            pairs.set_epoch(round(state.epoch or 0))

    callbacks = [*([HardNegatives()] if settings.hard_negatives else []), NewDraws()]
    if settings.patience is not None:
        callbacks.append(transformers.EarlyStoppingCallback(settings.patience))
    trainer = GroupTrainer(
        model=model,
        args=arguments,
        train_dataset=pairs,
        eval_dataset=[0] if held_out else None,
        data_collator=partial(collate, encoder=encoder, parts=settings.length_parts),
        callbacks=callbacks,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def group_loss(model: Any, inputs: Mapping[str, Any], settings: TrainingSettings) -> Any:
    """Loss of a batch: of the answers, and where there are lessons, with the settings' weights, of the teacher's scores."""
    import torch
    from torch.nn.functional import mse_loss

    if "taught" not in inputs:
        logits = torch.cat([model(**part).logits[:, 0].float() for part in inputs["parts"]])
        return answer_loss(_in_order(logits, inputs), inputs, settings)
    model = getattr(model, "module", model)
    # what several processes wrap it in knows nothing of the quick pass; see `_share_gradients`
    logits = _in_order(torch.cat([run(model, part, settings.bf16) for part in inputs["parts"]]), inputs)
    answered = settings.answer_weight * answer_loss(logits, inputs, settings)
    return answered + settings.teacher_weight * mse_loss(logits, inputs["taught"])


def _share_gradients(model: Any) -> None:
    """Each process goes on with the mean of what all have found."""
    if n_processes() == 1:
        return
    import torch
    from torch import distributed

    found = [weights.grad for weights in model.parameters() if weights.grad is not None]
    together = torch.cat([each.flatten() for each in found])
    distributed.all_reduce(together)
    together /= n_processes()
    for each, mean in zip(found, together.split([each.numel() for each in found]), strict=True):
        each.copy_(mean.view_as(each))


def answer_loss(logits: Any, inputs: Mapping[str, Any], settings: TrainingSettings) -> Any:
    """Mean binary cross-entropy of the pairs, or mean cross-entropy of the groups that have an answer."""
    import torch
    from torch.nn import functional

    if settings.loss == "pair":
        return functional.binary_cross_entropy_with_logits(logits, inputs["targets"])
    groups = zip(logits.split(inputs["sizes"]), inputs["targets"].split(inputs["sizes"]), strict=True)
    losses = [
        -(targets * functional.log_softmax(settings.sharpness * scores, dim=0)).sum()
        for scores, targets in groups
        if targets.any()
    ]
    return torch.stack(losses).mean() if losses else logits.sum() * 0


def _in_order(values: Any, inputs: Mapping[str, Any]) -> Any:
    """Rows by parts -> rows as the examples have them."""
    import torch

    return torch.empty_like(values).index_copy(0, inputs["order"], values)


def score_groups(
    model: Any, encoder: PairEncoder, groups: Sequence[PairGroup], settings: TrainingSettings
) -> list[dict[str, float]]:
    """The score of each text of each group. Several processes share the groups, and each gets all scores."""
    return share_out(lambda group: _score_group(model, encoder, group, settings), groups)


def _score_group(model: Any, encoder: PairEncoder, group: PairGroup, settings: TrainingSettings) -> dict[str, float]:
    import torch

    model.eval()
    device = next(model.parameters()).device
    rows = {text: encoder.row(group.query, text) for text in group.texts}
    distinct = sorted(set(rows.values()), key=lambda row: (-len(row.ids), row))
    scores: list[float] = []
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=settings.bf16):
        for start, stop in pairwise(batch_bounds([len(row.ids) for row in distinct], settings.eval_tokens)):
            inputs = {name: tensor.to(device) for name, tensor in encoder.tensors(distinct[start:stop]).items()}
            scores += run(model, inputs, settings.bf16).tolist()
    known = dict(zip(distinct, scores, strict=True))
    return {text: known[row] for text, row in rows.items()}


def _measure(
    model: Any, encoder: PairEncoder, groups: Sequence[PairGroup], settings: TrainingSettings
) -> dict[str, float]:
    from ranker.training import ranks_to_metrics

    found = score_groups(model, encoder, groups, settings)
    return ranks_to_metrics([_best_rank(group, scores) for group, scores in zip(groups, found, strict=True)])


def _best_rank(group: PairGroup, scores: Mapping[str, float]) -> int:
    """How many negatives come before the best positive; ties count against it."""
    best = max(scores[text] for text in group.positives)
    return sum(scores[text] >= best for text in group.negatives)


def _hardest(
    model: Any, encoder: PairEncoder, groups: Sequence[PairGroup], settings: TrainingSettings
) -> dict[int, tuple[str, ...]]:
    found = score_groups(model, encoder, groups, settings)
    return {
        place: tuple(sorted(set(group.negatives), key=lambda text: (-scores[text], text))[: settings.hard_negatives])
        for place, (group, scores) in enumerate(zip(groups, found, strict=True))
    }
