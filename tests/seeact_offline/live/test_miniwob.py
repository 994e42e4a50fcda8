"""MiniWoB++: the benchmark's seeds and rewards, what is recorded of eight tasks, and what is refused."""

from __future__ import annotations

import json
import random
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.live.acting_places import RECIPES, miniwob_episodes, names_of_tasks, page_seed, seeds_of_tasks
from seeact_offline.live.episode_results import EpisodeLine, baselines, summarise
from seeact_offline.live.running import LiveRun, browse
from seeact_offline.records import Completion, InputError, Model, Request, Usage
from seeact_offline.runs.config import EvalConfig
from tests.seeact_offline.conftest import Cli
from tests.seeact_offline.live.sites import REAL_BROWSER

PAGES = pytest.mark.skipif(find_spec("miniwob") is None, reason="the package miniwob is not installed")
PAGE = """<!doctype html><html><head><style>body { margin: 0 } button, a { position: absolute; left: 20px; width: 100px; height: 20px }</style><script>
var WOB_RAW_REWARD_GLOBAL = 0, WOB_DONE_GLOBAL = false, WOB_TASK_READY = true;
Math.seedrandom = (seed) => { Math.random = () => seed / 1000000; };
const part = (id) => document.getElementById(id).id;
var core = {
  clearTimer() {}, canvasDrawClick() {},
  getUtterance: () => ({utterance: document.getElementById('query').textContent}),
  startEpisodeReal() { part('reward-display'); document.getElementById('query').textContent = 'Press  ' + Math.random(); },
  endEpisode(reward) { part('sync-task-cover'); WOB_RAW_REWARD_GLOBAL = reward; WOB_DONE_GLOBAL = true; },
};
</script></head><body><div id=query></div>
<button style="top: 20px" onclick="core.endEpisode(0.1)">Little</button>
<button style="top: 60px" onclick="core.endEpisode(1)">All</button>
<button style="top: 100px" onclick="core.endEpisode(-1)">Wrong</button>
<a style="top: 140px" href="?elsewhere">Away</a><a style="top: 180px" href="#here">Here</a>
<div id=reward-display>Reward</div><div id=click-canvas></div><div id=sync-task-cover>START</div>
</body></html>"""
SAYS = '<tool_call>\n{"name": "computer_use", "arguments": %s}\n</tool_call>'


class Clicks(Model):
    """Clicks at one height, then says that it is done."""

    def __init__(self, top: float | None) -> None:
        self.top, self.asked = top, list[Request]()

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        click = {"action": "left_click", "coordinate": [60, self.top]}
        ends = self.top is None or len(self.asked) > 1
        return Completion(
            SAYS % json.dumps({"action": "terminate", "status": "success"} if ends else click), Usage(calls=1)
        )


def run(out: Path, model: Any, tasks: list[str], seeds: int = 1, agent: str = "qwen2.5-vl", **options: Any) -> LiveRun:
    config = EvalConfig(agent=agent, model=model, tasks=tasks, out=out, concurrency=1)
    return browse("miniwob", config=config, seeds=seeds, **options)


# --- seeds ---


def mersenne(seed: int) -> random.Random:
    """The generator as its authors seed it by one number, which Python's own seeding does otherwise."""
    words = [seed]
    for i in range(1, 624):
        words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + i) & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*words, 624), None))
    return generator


def below(generator: random.Random, limit: int) -> int:
    """Draws of as many bits as the limit has, until one is below it."""
    mask = (1 << (limit - 1).bit_length()) - 1
    while (drawn := generator.getrandbits(32) & mask) >= limit:
        pass
    return drawn


def test_seeds_are_drawn_as_published() -> None:
    generator, names = mersenne(42), [f"task-{i}" for i in range(125)]
    assert seeds_of_tasks(names, 5) == {name: [below(generator, 34) for _ in range(5)] for name in names}
    assert [page_seed(seed) for seed in (0, 7, 33)] == [below(mersenne(seed), 1_000_000) for seed in (0, 7, 33)]


@PAGES
def test_the_benchmark_has_125_tasks_and_625_episodes_of_which_some_are_drawn_twice() -> None:
    episodes = miniwob_episodes(EvalConfig(), None, is_recorded=False)
    ids = [one.annotation_id for one in episodes]
    assert (len({one.website for one in episodes}), len(ids), len(set(ids))) == (125, 625, 590)
    assert ids[:5] == [f"ascending-numbers.{seed}" for seed in (28, 14, 7, 20, 18)]


@PAGES
@pytest.mark.parametrize("n", [1, 5, 7])
def test_fewer_seeds_are_the_beginning_of_more(n: int) -> None:
    names = ["ascending-numbers", "bisect-angle"]
    more = seeds_of_tasks(names, 12)
    assert seeds_of_tasks(names, n) == {name: seeds[:n] for name, seeds in more.items()}


def test_a_choice_of_tasks_changes_no_seeds() -> None:
    chosen = miniwob_episodes(EvalConfig(tasks=["click-tab"]), None, is_recorded=True)
    every = miniwob_episodes(EvalConfig(), None, is_recorded=False)
    assert [one.annotation_id for one in chosen] == [one.annotation_id for one in every if one.website == "click-tab"]


# --- rewards ---


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the same name with one page."""
    folder = tmp_path / "package" / "miniwob"
    (folder / "html" / "miniwob").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    (folder / "html" / "miniwob" / "click-pie.html").write_text(PAGE)
    monkeypatch.syspath_prepend(tmp_path / "package")


@PAGES
@pytest.mark.usefixtures("toy")
class TestRewards:
    pytestmark = REAL_BROWSER

    @pytest.mark.parametrize(
        ("top", "success", "full", "end"),
        [
            (30, 1.0, 0.0, "over"),
            (70, 1.0, 1.0, "over"),
            (110, 0.0, 0.0, "over"),
            (150, 0.0, 0.0, "over"),
            (190, 0.0, 0.0, "over"),
            (None, 0.0, 0.0, "stopped"),
        ],
        ids=["little", "all", "wrong", "another address", "another place of it", "nothing"],
    )
    def test_above_0_is_a_success_and_1_is_told_apart(
        self, top: float | None, success: float, full: float, end: str, tmp_path: Path
    ) -> None:
        found = run(tmp_path / "run", Clicks(top), ["click-pie"])
        assert found.results.success_raw_1 is not None
        assert (found.results.success.macro, found.results.success_raw_1.macro) == (success, full)
        assert [one.end for one in found.episodes] == [end]

    def test_the_goal_is_told_and_is_not_on_the_page(self, tmp_path: Path) -> None:
        model = Clicks(None)
        found = run(tmp_path / "run", model, ["click-pie"], keep_rows=True)
        seed = int(found.episodes[0].annotation_id.rpartition(".")[2])
        assert found.episodes[0].task == f"Press {page_seed(seed) / 1_000_000}"
        html = json.loads((found.path / "rows.jsonl").read_text())["cleaned_html"]
        assert "Little" in html
        assert not any(text in html for text in ("Press", "Reward", "START"))

    def test_an_episode_that_is_drawn_twice_is_run_once_and_counts_twice(self, tmp_path: Path) -> None:
        model = Clicks(None)
        found = run(tmp_path / "run", model, ["click-pie"], seeds=8)
        n_lines = len((found.path / "episodes.jsonl").read_text().splitlines())
        assert (found.results.n_tasks, found.results.n_episodes) == (1, 8)
        assert n_lines == len(model.asked) == 7


def line(name: str, raw: float, **more: Any) -> EpisodeLine:
    site = name.rpartition(".")[0]
    return EpisodeLine(name, "do", site, "", "over", raw > 0, raw > 0, 1, raw_reward=raw, **more)


def test_figures_are_means_over_tasks_of_means_over_seeds() -> None:
    lines = [
        line("click-test.1", 1),
        line("click-test.2", -1),
        *[line("click-tab.3", 0.5)] * 2,
        line("click-tab.4", 0.5),
    ]
    results = summarise(lines, {}, is_helped=False, is_seeded=True)
    assert (results.n_tasks, results.n_episodes, results.usage.steps) == (2, 5, 4)
    assert (results.success.macro, results.success.micro) == (0.75, 0.8)
    assert results.success_raw_1 is not None
    assert (results.success_raw_1.macro, results.success_raw_1.micro) == (0.25, 0.2)
    assert {site: one.macro for site, one in results.by_website.items()} == {"click-test": 0.5, "click-tab": 1.0}


# --- the real pages ---


@PAGES
class TestPages:
    pytestmark = REAL_BROWSER

    @pytest.mark.parametrize(
        ("seeds", "unfinished"),
        # the other button covers the middle of this one
        [(1, []), pytest.param(2, ["click-test-2.8"], marks=pytest.mark.nightly)],
    )
    def test_the_oracle_finishes_what_is_recorded_of_eight_tasks(
        self, seeds: int, unfinished: list[str], tmp_path: Path
    ) -> None:
        found = run(tmp_path / "run", "builtin/oracle", [*RECIPES], seeds=seeds)
        assert [one.annotation_id for one in found.episodes if not one.has_full_reward] == unfinished
        ends = {"over": len(found.episodes) - len(unfinished)} | ({"stopped": len(unfinished)} if unfinished else {})
        assert (len(found.episodes), found.results.ends) == (8 * seeds, ends)

    def test_the_same_seed_twice_gives_the_same_pictures_and_actions(self, tmp_path: Path) -> None:
        tasks = ["click-collapsible", "click-pie", "use-spinner"]
        runs = [run(tmp_path / name, "builtin/random", tasks, agent="webvoyager", max_steps=3) for name in ("a", "b")]
        lines = [(one.path / "trajectories.jsonl").read_bytes() for one in runs]
        assert lines[0] == lines[1]
        assert len(runs[0].episodes) == 3

    def test_submit_presses_the_button_at_once_or_stops(self, tmp_path: Path) -> None:
        found = run(tmp_path / "run", "builtin/submit", ["enter-text", "click-link"])
        assert [(one.website, one.end, one.n_steps) for one in found.episodes] == [
            ("click-link", "stopped", 1),
            ("enter-text", "over", 1),
        ]

    @pytest.mark.parametrize("agent", ["seeact", "visualwebarena", "uitars"])
    def test_every_kind_of_agent_can_act(self, agent: str, tmp_path: Path) -> None:
        found = run(tmp_path / "run", "builtin/oracle", ["click-test-2"], agent=agent)
        assert [one.has_full_reward for one in found.episodes] == [True]

    def test_names_of_tasks_are_an_argument_and_the_report_shows_what_nothing_gives(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        done = cli("browse", "miniwob", "--agent", "qwen2.5-vl", "--model", "builtin/lexical", "--tasks", "click-test,click-tab",
                   "--seeds", 1, "--out", tmp_path / "run")  # fmt: skip
        assert done.status == 0, done.error
        text = (tmp_path / "run" / "report.md").read_text()
        assert "2 tasks, 2 episodes" in text
        assert all(word in text for word in ("builtin/random", "builtin/submit", "raw reward 1", "click-tab"))


@PAGES
def test_the_baselines_are_measured_on_every_task(tmp_path: Path) -> None:
    from seeact_offline.live.acting_places import html_folder

    figures = baselines(names_of_tasks(html_folder()))
    assert {*figures} == {"builtin/random", "builtin/submit"}
    assert all(0 < one.success_raw_1 < one.success < 0.2 for one in figures.values())


# --- what is refused ---


@PAGES
@pytest.mark.parametrize(
    ("source", "model", "options", "sentence"),
    [
        ("miniwob", "builtin/lexical", {"tasks": ["moving-items"]}, "1 that no task has, moving-items first"),
        (
            "miniwob",
            "builtin/oracle",
            {"tasks": ["click-pie"]},
            "has recorded acts for click-button, click-dialog, .* alone",
        ),
        ("sites", "builtin/lexical", {"seeds": 2}, "`seeds` need `miniwob`"),
        ("sites", "builtin/submit", {}, "builtin/submit needs `miniwob`"),
    ],
)
def test_what_miniwob_alone_knows_is_refused_elsewhere(
    source: str, model: str, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        browse(source, agent="qwen2.5-vl", model=model, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "miniwob", None)
    with pytest.raises(InputError, match=r"miniwob needs the package miniwob: run .*pip install .*live"):
        browse("miniwob", agent="qwen2.5-vl", model="builtin/lexical", out=tmp_path / "run")
