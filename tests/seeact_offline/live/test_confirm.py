"""A person confirms each act: what is asked, what a no and an end do, and where nobody can be asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from seeact_offline.cli.browse import _ask
from seeact_offline.live.episodes import ENDED, REJECTED, Confirm, Decision, Proposal
from seeact_offline.live.running import LiveRun, browse
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from tests.scripted import Scripted
from tests.seeact_offline.conftest import Cli
from tests.seeact_offline.live.sites import REAL_BROWSER, write_site

SAYS = '<tool_call>\n{"name": "computer_use", "arguments": %s}\n</tool_call>'
BUY = SAYS % '{"action": "left_click", "coordinate": [100, 55]}'
END = SAYS % '{"action": "terminate", "status": "success"}'


class Person:
    """Decides by a list, and remembers what was asked."""

    def __init__(self, *decisions: Decision) -> None:
        self.asked: list[Proposal] = []
        self._decisions = iter(decisions)

    def __call__(self, proposal: Proposal) -> Decision:
        self.asked.append(proposal)
        return next(self._decisions)


def run(folder: Path, model: Scripted, confirm: Confirm, agent: str = "qwen2.5-vl") -> LiveRun:
    config = EvalConfig(agent=agent, model=model, ranker="bm25", out=folder / "run", concurrency=1)
    return browse(str(write_site(folder / "site")), config=config, confirm=confirm)


class TestInABrowser:
    pytestmark = REAL_BROWSER

    def test_a_person_is_asked_about_each_act_and_a_no_leaves_the_page_as_it_is(self, tmp_path: Path) -> None:
        person = Person("reject", "accept", "accept")
        found = run(tmp_path, Scripted(BUY, BUY, END), person)
        (one,) = found.episodes
        assert (one.end, one.done, one.n_steps, one.n_failed_acts) == ("stopped", True, 3, 1)
        first, _, last = person.asked
        assert first == Proposal("Buy it", "/index.html", 1, "click (99, 54)", "[button] Buy at (99, 54)")
        assert (last.number, last.action) == (3, "stop success")
        (line,) = (found.path / "trajectories.jsonl").read_text().splitlines()
        steps = json.loads(line)["steps"]
        assert [step.get("action") for step in steps[:2]] == [
            f"click (99, 54); not carried out: {REJECTED}",
            "click (99, 54)",
        ]
        assert [[round(x) for x in step["place"]] for step in steps[:2]] == [[99, 54, 0, 0]] * 2
        assert json.loads((found.path / "manifest.json").read_text())["settings"]["confirm"] is True

    def test_a_no_is_no_step_in_vain_and_an_end_ends_the_episode(self, tmp_path: Path) -> None:
        person = Person("reject", "reject", "end")
        replies = ["I will click Buy.", "ELEMENT: A\nACTION: CLICK\nVALUE: None"] * 3
        found = run(tmp_path, Scripted(*replies), person, "seeact")
        (one,) = found.episodes
        # two steps in vain would be SeeAct's end
        assert (one.end, one.detail, one.n_steps, one.done) == ("stopped", ENDED, 3, False)


@pytest.mark.parametrize(
    ("lines", "decision"),
    [("\n", "accept"), ("n\n", "reject"), (" E \n", "end"), ("what\n\n", "accept"), ("\x04", "end")],
)
def test_the_terminal_asks_until_it_is_answered(
    lines: str, decision: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person, terminal = os.openpty()
    os.write(person, lines.encode())
    with os.fdopen(person, "wb"), os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert _ask(Proposal("Buy\x1b[2J it", "/index.html", 2, "Click [3]", "[button] Buy at (1, 2)")) == decision
    shown = capsys.readouterr().out
    assert "Step 2 on /index.html: Click [3]" in shown
    assert "[button] Buy at (1, 2)" in shown
    # a page's text steers no terminal
    assert "\x1b" not in shown


def test_where_nobody_can_be_asked_is_said_before_a_browser_starts(tmp_path: Path, cli: Cli) -> None:
    script = write_site(tmp_path / "site")
    refused = cli("browse", script, "--model", "builtin/lexical", "--confirm", "--out", tmp_path / "run")
    assert (refused.status, "standard input is none" in refused.error) == (2, True)
    with pytest.raises(InputError, match="a person is asked about one browser"):
        browse(str(script), confirm=lambda _: "accept", concurrency=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
