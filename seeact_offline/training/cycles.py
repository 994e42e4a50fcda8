"""The cycles of `improve`: everything is a run of `evaluate`, a training of `finetune`, or a file of dialogues,
each kept in its folder.

A killed `improve` is called again: what is finished is found, and what is not is resumed by its own part.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from seeact_offline.dataset import TEST_SPLITS, open_split
from seeact_offline.files.digest import file_digest
from seeact_offline.files.markdown import printable
from seeact_offline.files.options import ABOVE_0, FROM_0, POSITIVE, option, words_of
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.grounding.oracle import PREDICTIONS
from seeact_offline.models import model_name
from seeact_offline.models.budget import Price
from seeact_offline.models.hf_folder import digest
from seeact_offline.models.prices import PriceTable
from seeact_offline.ranking.stage import DATA
from seeact_offline.records import InputError, ModelStopped
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.folder import Made, Manifest, RunFolder, read_manifest
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.runs.run import Run, load_run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted
from seeact_offline.tables.table_input import RECORD
from seeact_offline.training.attempts import (
    AskedRun,
    Attempt,
    DialogueFile,
    Exploration,
    differences,
    exploration_figures,
    split_figures,
    tasks_of_hard_websites,
    write_control,
    write_run_dialogues,
)
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.bases import base_folder
from seeact_offline.training.checks import check_separate, check_settings
from seeact_offline.training.improvement_report import OFFLINE, improvement_png, improvement_report, n_not_run
from seeact_offline.training.recipe import Recipe, Running, splits
from seeact_offline.training.trainer import last_checkpoint
from seeact_offline.training.tuning import fine_tune
from seeact_offline.training.vlm import open_vlm
from seeact_offline.training.web_agent_tuning import ASKED, BASELINE, check_train_steps
from seeact_offline.trajectories.dialogue_files import GOLD, NONE
from seeact_offline.trajectories.judge_runs import judge
from seeact_offline.web_agents.web_loop import read_thoughts

JUDGE, SHOWN = "strict", "3"
"""The rules and prompts of the judge, and the number of last screenshots: OpenWebVoyager's, but for its rule that a
task without an answer has failed, as recorded steps have none."""
RESULTS, REPORT, FIGURE = "improvement.json", "report.md", "improvement.png"
OF_TRAINING = "epochs batch learning_rate warmup weight_decay clip lora optimizer quantised seed".split()
"""Fields of the recipe that decide the weights."""
OPTIONS, ATTEMPTS, OF_EACH, AFTER_EACH = (
    "options",
    "attempts and feedback",
    "training of each cycle",
    "evaluation after each cycle",
)
"""Groups of options."""
Train = Callable[[Any, Sequence[Path], Path], Any]
"""Trains a model on files of dialogues, into a folder, and returns the trained one. Called again with the same
arguments where a killed `improve` resumes."""
ORACLE = "builtin/oracle"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImproveConfig:
    """Everything that decides the cycles. The defaults are OpenWebVoyager's, but for the trainer's,
    which are for one GPU."""

    # fmt: off
    model: Any = option(
        None, "an image-text-to-text model, whose weights are trained",
        group=OPTIONS, metavar="hf/REPO_OR_DIR", is_basic=True,
    )
    """With `train`, anything that `eval` takes as a model."""
    out: Path | None = option(
        None, "folder of all cycles; the same command resumes from it",
        group=OPTIONS, read=Path, metavar="DIR", is_basic=True,
    )
    train: Train | None = None
    """Another way of training than `finetune --baseline web-agent`."""
    dataset: Any = option(
        "sample", "whose train split is learnt from (default: {default})",
        group=DATA, metavar="DIR|HUB_ID", is_basic=True,
    )
    limit: int | None = option(
        None, "only the first N train tasks", group=DATA, number=POSITIVE, metavar="N", is_basic=True
    )
    test_data: Any = option(None, "whose test splits count (default: --dataset)", group=DATA, metavar="DIR|HUB_ID")
    """They are asked after each cycle and never trained on."""
    imitate: Path | None = option(
        None, "imitate this run over the train split (default: the recorded actions)",
        group=DATA, read=Path, metavar="RUN", is_basic=True,
    )
    """Its answered tasks, right or not."""
    thoughts: Path | None = option(
        None, "thoughts of recorded actions (default: a neutral line for each)", group=DATA, read=Path, metavar="RUN"
    )

    cycles: int = option(
        3, "explore and train so many times (default: {default})",
        group=ATTEMPTS, number=POSITIVE, metavar="N", is_basic=True,
    )
    attempts: int = option(
        5, "most attempts at a task in a cycle (default: {default})",
        group=ATTEMPTS, number=POSITIVE, metavar="K", is_basic=True,
    )
    temperature: float = option(
        1.2, "of attempts; test splits are asked at 0 (default: {default})", group=ATTEMPTS, number=FROM_0, metavar="X"
    )
    max_turns: int = option(
        5, "most questions a step (default: {default})", group=ATTEMPTS, number=POSITIVE, metavar="N"
    )
    guided: bool = option(
        False, "K attempts more for websites of which under 40 %% of the tasks are solved by then",
        group=ATTEMPTS, read=bool, is_basic=True,
    )
    judge: Any = option(
        None, "a model that accepts attempts (default: the scorer, where all steps are right)",
        group=ATTEMPTS, metavar="PROVIDER/NAME", is_basic=True,
    )
    """It is asked as `judge --judge strict --k 3` asks it."""
    judge_base_url: str | None = option(None, "its server", group=ATTEMPTS, metavar="URL")
    price: Price | PriceTable | str | None = option(
        None,
        "the judge's USD per million prompt and completion tokens, or a file of prices (default: the bundled list of"
        " 2026-11-23)",
        group=ATTEMPTS, metavar="IN,OUT|FILE",
    )
    max_cost: float | None = option(
        None, "most that the judge's calls may cost in all cycles",
        group=ATTEMPTS, number=ABOVE_0, metavar="USD", is_basic=True,
    )
    together: int = option(
        8, "questions asked at once (default: {default})", group=ATTEMPTS, number=POSITIVE, metavar="N"
    )

    recipe: Recipe = BASELINE.recipe
    running: Running = field(default_factory=Running)
    processes: int = option(1, "that prepare the data", group=OF_EACH, number=POSITIVE, metavar="N")
    evaluate: tuple[str, ...] = option(
        TEST_SPLITS, "none for none (default: the three test splits)",
        group=AFTER_EACH, read=splits, metavar="SPLIT[,SPLIT]", is_basic=True,
    )
    eval_limit: int | None = option(
        None, "only the first N tasks of each", group=AFTER_EACH, number=POSITIVE, metavar="N"
    )
    command: str | None = None
    """The command line, for the manifest."""
    # fmt: on

    def __post_init__(self) -> None:
        """Raises InputError for a value that a field cannot have."""
        if self.model is None:
            raise InputError("model", sentence="name a `model`, hf/REPO_OR_DIR")
        if self.train is None and not (isinstance(self.model, str) and self.model.startswith("hf/")):
            raise InputError("model", "hf/REPO_OR_DIR, whose weights can be trained", str(self.model))
        if self.out is None:
            raise InputError("out", sentence="name a folder with `out`")
        for name, words in words_of(ImproveConfig).items():
            words.check(name, getattr(self, name))
        for name in ("price", "max_cost"):
            if getattr(self, name) is not None and self.judge is None:
                raise InputError(name, sentence=f"`{name}` needs `judge`, whose calls cost money")
        if unknown := [name for name in self.evaluate if name not in TEST_SPLITS]:
            raise InputError("evaluate", f"some of {', '.join(TEST_SPLITS)}", unknown[0])
        for name in ("out", "imitate", "thoughts"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))

    @classmethod
    def of(cls, config: ImproveConfig | None, options: dict[str, Any]) -> ImproveConfig:
        """The config with these options, which win over it. Raises InputError; TypeError for an unknown name."""
        names = [field.name for field in fields(cls)]
        if unknown := sorted(options.keys() - set(names)):
            near = get_close_matches(unknown[0], names, 1)
            raise TypeError(f"no option of improve is named {unknown[0]}{f': did you mean {near[0]}?' if near else ''}")
        return cls(**options) if config is None else replace(config, **options)

    def judging(self, out: Path, max_cost: float | None) -> EvalConfig:
        """The judge of attempts. Raises InputError for a price that is none."""
        return EvalConfig(model=self.judge, base_url=self.judge_base_url, price=self.price, max_cost=max_cost, out=out)

    def asking(self, model: Any, **more: Any) -> EvalConfig:
        """The agent with this model on the train split. `more`: other fields of `EvalConfig`."""
        usual: dict[str, Any] = {
            # the oracle's replies are not generated
            **(ASKED if model != ORACLE else {"agent": ASKED["agent"]}),
            "dataset": self.dataset,
            "split": "train",
            "limit": self.limit,
            "model": model,
            "max_turns": self.max_turns,
            "concurrency": self.together,
            "seed": self.recipe.seed,
            # another model has the same name after each training
            "cache": "off",
            "command": self.command,
        }
        if isinstance(model, str) and model.startswith("hf/"):
            usual["model_args"] = {"batch_size": self.together}
        if self.thoughts is not None and more.get("split", "train") == "train":
            usual["thoughts"] = self.thoughts
        return EvalConfig.of(**{**usual, **more})


@dataclass(frozen=True, slots=True)
class Improvement:
    """The folder of all cycles."""

    path: Path

    @property
    def results(self) -> dict[str, Any]:
        """`improvement.json`: fractions between 0 and 1."""
        return dict(json.loads((self.path / RESULTS).read_text("utf-8")))

    @property
    def n_failed(self) -> int:
        """Steps that failed to run, in attempts and test splits; they count as wrong."""
        return sum(map(n_not_run, self.results["cycles"]))

    def report(self) -> str:
        """`report.md`, the summary for people."""
        return (self.path / REPORT).read_text("utf-8")


def improve(config: ImproveConfig | None = None, *, watch: Watch | None = None, **options: Any) -> Improvement:
    """Improves an agent from its own attempts at recorded train tasks, as the command `improve` does.

    `options` are fields of `ImproveConfig`, which win over `config`. Called again with the same `out`, it resumes.
    Raises InputError for what cannot be used: test tasks among those trained on, a folder of another configuration.
    ModelStopped where a model or judge does not answer.
    """
    run = _Improving(ImproveConfig.of(config, options), watch or Watch())
    folder, manifest = RunFolder(run.out), run.manifest()
    folder.check(manifest.identity)
    with folder.alone():
        folder.claim(manifest)
        return run.all_cycles()


class _Improving:
    """One improvement: its settings, and what it has done so far."""

    def __init__(self, config: ImproveConfig, watch: Watch) -> None:
        """Raises InputError."""
        assert config.out is not None
        self.config, self.watch, self.out = config, watch, config.out
        if config.judge is not None and (config.price is not None or config.max_cost is not None):
            # before anything is trained
            self._judge_settings.check_limit()
        self.split = open_split(config.dataset, "train", limit=config.limit)
        self.tested = [split for split in check_separate(self.split, config.test_data) if split in config.evaluate]
        if config.train is None:
            check_settings(config.recipe, config.running, BASELINE.packages)
            # otherwise it would be refused after the recorded actions were asked
            open_vlm(config.model.removeprefix("hf/"), config.running.attention, "model")
        # such a run may be over more train tasks than are asked for
        whole = self.split if config.limit is None else open_split(config.dataset, "train")
        for name in ("imitate", "thoughts"):
            run = getattr(config, name)
            if run is not None:
                check_train_steps(AskedRun(load_run(run)).predictions, whole, name)
        if config.imitate is not None:
            agent = read_manifest(config.imitate).settings.get("grounding")
            if agent != ASKED["agent"]:
                sentence = f"{config.imitate} is of {agent}; `imitate` needs a run of agent {ASKED['agent']}"
                raise InputError("imitate", sentence=sentence)
        missing = [name for name in config.evaluate if name not in self.tested]
        self.remarks = [f"{name} is not asked: the data has no such split" for name in missing]
        if config.judge is not None and (config.judge is config.model or self._is_own_model(config.judge)):
            self.remarks.append(
                "The judge is the model itself: what it accepts says how far it agrees with itself, not how often it"
                " succeeds."
            )

    def _is_own_model(self, name: Any) -> bool:
        if not isinstance(name, str) or not isinstance(self.config.model, str):
            return False
        # the same name may be served by another provider
        (_, _, judge), (_, _, model) = name.partition("/"), self.config.model.partition("/")
        folder = Path(judge).resolve()
        return folder == Path(model).resolve() or self.out.resolve() in folder.parents

    def manifest(self) -> Manifest:
        """Names everything but the number of cycles and the splits that are asked: of those,
        more can be asked for later."""
        config = self.config
        recipe = {name: getattr(config.recipe, name) for name in OF_TRAINING} if config.train is None else {}
        trained = config.train is None
        identity = {
            "improve": ASKED["agent"],
            "base": digest(base_folder(config.model.removeprefix("hf/"), "model"))
            if trained
            else model_name(config.model),
            "dataset_fingerprint": self.split.fingerprint,
            "limit": config.limit,
            **{name: getattr(config, name) for name in ("attempts", "temperature", "max_turns", "guided")},
            "judge": None if config.judge is None else model_name(config.judge),
            "imitate": None if config.imitate is None else file_digest(config.imitate / PREDICTIONS),
            "thoughts": None if config.thoughts is None else file_digest(config.thoughts / PREDICTIONS),
            **recipe,
        }  # fmt: skip
        settings = {"model": model_name(config.model), "dataset": str(config.dataset), **identity}
        made = Made(
            uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds"), config.command, config.temperature
        )
        return Manifest(identity=identity, settings=settings, made=made)

    # --- cycles ---

    def all_cycles(self) -> Improvement:
        for remark in (OFFLINE, *self.remarks):
            self.watch.note(remark)
        gold, imitation = self.gold, self.imitation
        for name, dialogues in {"imitate": imitation, "dataset": gold}.items():
            if not dialogues.counts.items:
                raise InputError(name, "train steps that can be imitated", f"none of {len(self.split.keys)}")
        self._note(0, f"{_extent(imitation)} to imitate")
        model = control = self._trained(self.config.model, [imitation.path], self._folder(0) / "model")
        cycles = [{"cycle": 0, **self._tested(0, model, {})}]
        self._write(cycles)
        for number in range(1, self.config.cycles + 1):
            cycle, explored = self._folder(number), self._explored(number, model)
            accepted = self._accepted(number, explored)
            self._note(
                number, f"{_accepted_in_words(explored, len(self.split.tasks))}; {_extent(accepted)} to learn from"
            )
            n_items = imitation.counts.items + accepted.counts.items
            other = cycle / "data" / "control.jsonl"
            write_control(other, gold.path, n_items, f"{self.config.recipe.seed}\n{number}")
            model = self._trained(model, [imitation.path, accepted.path], cycle / "model")
            control = self._trained(control, [other], cycle / "control")
            figures = exploration_figures(explored, accepted.counts.items)
            cycles.append(
                {"cycle": number, "exploration": figures, **self._tested(number, model, {"control": control})}
            )
            self._write(cycles)
        return Improvement(self.out)

    def _folder(self, cycle: int) -> Path:
        return self.out / f"cycle-{cycle}"

    def _note(self, cycle: int, text: str) -> None:
        self.watch.note(f"cycle {cycle}: {text}")

    @cached_property
    def gold(self) -> DialogueFile:
        """The recorded actions, as far as the agent can see them."""
        config = self.config.asking(ORACLE, out=self._folder(0) / "gold")
        asked, thoughts = AskedRun(evaluate(config, watch=self.watch)), {}
        if (run := self.config.thoughts) is not None:
            thoughts = {"thoughts": read_thoughts(run), "thoughts_of": _model_of(run)}
        gold = self._written(0, "gold.jsonl", dict.fromkeys(asked.right, asked), GOLD, **thoughts)
        lost = Counter(row.outcome for rows in asked.tasks.values() for row in rows if row.key not in asked.right)
        return replace(gold, left_out={**gold.left_out, **lost})

    @cached_property
    def imitation(self) -> DialogueFile:
        """The dialogues that every cycle trains on."""
        if self.config.imitate is None:
            return self.gold
        asked = AskedRun(load_run(self.config.imitate))
        keys = [row.key for task in asked.acted & frozenset(self.split.tasks) for row in asked.tasks[task]]
        return self._written(0, "imitation.jsonl", dict.fromkeys(keys, asked), _model_of(self.config.imitate))

    def _written(
        self, cycle: int, name: str, runs: Mapping[Any, AskedRun], source: str, **thoughts: Any
    ) -> DialogueFile:
        path, asking = self._folder(cycle) / "data" / name, self.config.asking(ORACLE)
        return write_run_dialogues(path, self.split, runs, asking, cycle, source, **thoughts)

    def _explored(self, cycle: int, model: Any) -> Exploration:
        """Attempts each task until an attempt is accepted, at most `attempts` times; where it is guided, as many times
        more at the tasks of websites of which less than HARD_BELOW are solved by then."""
        most, attempts, left = self.config.attempts, list[Attempt](), frozenset(self.split.tasks)
        for number in range(1, (2 if self.config.guided else 1) * most + 1):
            if number == most + 1:
                left &= tasks_of_hard_websites(attempts)
            if not left:
                break
            decided = self._folder(cycle) / "accepted" / f"{number}.json"
            asked = AskedRun(self._attempt(cycle, number, model, left, decided.exists()))
            if not decided.exists():
                accepted = asked.solved if self.config.judge is None else self._judged(cycle, number, asked)
                decided.parent.mkdir(parents=True, exist_ok=True)
                replace_text(decided, json.dumps(sorted(accepted)) + "\n")
            attempts.append(Attempt(number, asked, left & frozenset(json.loads(decided.read_text("utf-8")))))
            left -= attempts[-1].accepted
        return Exploration(most, tuple(attempts))

    def _attempt(self, cycle: int, number: int, model: Any, tasks: frozenset[str], is_decided: bool) -> Run:
        config, out = self.config, self._folder(cycle) / "attempts" / str(number)
        if is_decided:
            # later attempts were at the tasks that this one left over: steps that failed to run are not asked again
            return load_run(out)
        self._note(cycle, f"attempt {number} at {counted(len(tasks), 'task')}")
        # each attempt draws anew
        seed = config.recipe.seed + 10_000 * cycle + number
        more = {"tasks": tasks, "limit": None, "seed": seed, "temperature": config.temperature}
        run = evaluate(config.asking(model, out=out, **more), watch=self.watch)
        if run.n_failed:
            self._note(cycle, f"{counted(run.n_failed, 'step')} failed to run in attempt {number} and count as wrong")
        return run

    def _judged(self, cycle: int, number: int, asked: AskedRun) -> Collection[str]:
        out, most = self._folder(cycle) / "judged" / str(number), self.config.max_cost
        left = None if most is None else max(0.0, most - (self._judge_cost(besides=out) or 0.0))
        try:
            judged = judge(
                asked.run.path, judge=JUDGE, k=(SHOWN,), config=self.config.judging(out, left), watch=self.watch
            )
        except InputError as error:
            if error.argument != "max_cost":
                raise
            raise self._too_little() from None
        if judged.n_left:
            raise self._too_little()
        if judged.n_failed == len(judged.judgements):
            # the same command asks again
            raise ModelStopped(
                "judge", "a judge that answers", f"none of {counted(judged.n_failed, 'judgement')} in {out}"
            )
        if judged.n_failed:
            self._note(cycle, f"{counted(judged.n_failed, 'judgement')} failed to run and count as not accepted")
        return frozenset(judgement.task for judgement in judged.judgements if judgement.verdict)

    @property
    def _judge_settings(self) -> ModelSettings:
        return model_settings(self.config.judging(self.out, self.config.max_cost), RunFolder(self.out))

    def _judge_cost(self, besides: Path | None = None) -> float | None:
        """USD spent on the judge so far, but for what was in the folder `besides`; None where that is not known."""
        folders = (RunFolder(folder) for folder in self.out.glob("cycle-*/judged/*/") if folder != besides)
        ledgers = [self._judge_settings.ledger(folder) for folder in folders]
        return sum(ledger.spent for ledger in ledgers) if all(ledger.knows_all for ledger in ledgers) else None

    def _too_little(self) -> InputError:
        spent = self._judge_cost() or 0.0
        got = f"{self.config.max_cost}, of which {spent:.4f} are spent; with more the same command resumes from here"
        return InputError("max_cost", sentence=f"`max_cost` is too little for the judge: {got}")

    def _accepted(self, cycle: int, explored: Exploration) -> DialogueFile:
        """Writes the dialogues of each accepted attempt's steps at which the model has acted."""
        runs = {
            row.key: attempt.asked
            for attempt in explored.attempts
            for task in attempt.accepted
            for row in attempt.asked.tasks[task]
            if attempt.asked.predictions[row.key].failure is None
        }
        return self._written(cycle, "accepted.jsonl", runs, f"cycle {cycle - 1}")

    def _trained(self, model: Any, files: list[Path], out: Path) -> Any:
        if self.config.train is not None:
            return self.config.train(model, files, out)
        config = self.config
        if not (out / RECORD).exists():
            asked = FineTuning(
                out=out, baseline="web-agent", base=model.removeprefix("hf/"), dataset=config.dataset,
                limit=config.limit, recipe=config.recipe, running=config.running, own={"dialogues": tuple(files)},
                resume=last_checkpoint(out) is not None, processes=config.processes, test_data=config.test_data,
                evaluate=(), command=config.command or "",
            )  # fmt: skip
            fine_tune(asked, self.watch)
        return f"hf/{out}"

    # --- figures ---

    def _tested(self, cycle: int, model: Any, controls: Mapping[str, Any]) -> dict[str, Any]:
        """The test splits, asked of the model and of others trained as long, and the differences."""
        tests: dict[str, Any] = {}
        for split in self.tested:
            run = self._tested_run(cycle, "runs", split, model)
            others = {name: self._tested_run(cycle, f"{name}-runs", split, other) for name, other in controls.items()}
            before = {"previous": load_run(self._folder(cycle - 1) / "runs" / split)} if cycle else {}
            tests[split] = {
                "model": split_figures(run),
                **{name: split_figures(other) for name, other in others.items()},
                "minus": differences(run, {**before, **others}, self.config.recipe.seed),
            }
        return {"tests": tests}

    def _tested_run(self, cycle: int, name: str, split: str, model: Any) -> Run:
        data = self.config.dataset if self.config.test_data is None else self.config.test_data
        more = {"dataset": data, "split": split, "limit": self.config.eval_limit}
        return evaluate(self.config.asking(model, out=self._folder(cycle) / name / split, **more), watch=self.watch)

    def _write(self, cycles: list[dict[str, Any]]) -> None:
        config = self.config
        results = {
            "schema": 1,
            "model": model_name(config.model),
            "dataset": str(config.dataset),
            "test_data": str(config.dataset if config.test_data is None else config.test_data),
            "feedback": "scorer" if config.judge is None else f"judge {model_name(config.judge)}",
            "judge_cost_usd": None if config.judge is None else self._judge_cost(),
            "temperature": config.temperature,
            "attempts": config.attempts,
            "guided": config.guided,
            "imitation": {
                "source": GOLD if config.imitate is None else _model_of(config.imitate),
                "thoughts": NONE if config.thoughts is None else _model_of(config.thoughts),
                **asdict(self.imitation.counts),
                "left_out": dict(sorted(self.imitation.left_out.items())),
            },
            "remarks": self.remarks,
            "cycles": cycles,
        }
        folder = RunFolder(self.out)
        folder.write(f"cycle-{cycles[-1]['cycle']}/figures.json", json.dumps(cycles[-1], indent=2) + "\n")
        folder.write(RESULTS, json.dumps(results, indent=2) + "\n")
        folder.write(REPORT, printable(improvement_report(results)))
        picture = improvement_png(results)
        write_whole(self.out / FIGURE, lambda draft: draft.write_bytes(picture))


def _model_of(run: Path) -> str:
    return str(read_manifest(run).settings["model"])


def _extent(dialogues: DialogueFile) -> str:
    counts = dialogues.counts
    return f"{counted(counts.items, 'action')} of {counted(counts.steps, 'step')} and {counted(counts.tasks, 'task')}"


def _accepted_in_words(explored: Exploration, n_tasks: int) -> str:
    within = len(explored.solved_within(explored.most))
    text = f"{within} of {counted(n_tasks, 'task')} accepted within {counted(explored.most, 'attempt')}"
    if more := len(explored.accepted) - within:
        text += f", {more} more of hard websites after it"
    if not explored.first.completed:
        text += "; the first answered no whole task in the agent's form"
    return text
