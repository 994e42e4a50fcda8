"""Several processes of one training share work, and each gets all that was found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranker.processes import share_out
from tests.together import run_together

SHARING = """
import json, os, sys
from pathlib import Path
from ranker.processes import part, share_out

found = share_out(lambda item: [item, os.environ["RANK"]], "abcde")
Path(sys.argv[1], os.environ["RANK"]).write_text(json.dumps(found))
part()
"""


def test_one_process_does_all_of_it() -> None:
    assert share_out(str.upper, "abc") == ["A", "B", "C"]


@pytest.mark.parametrize("n", [2, 3])
def test_processes_share_the_work_and_all_get_all_of_it_in_order(n: int, tmp_path: Path) -> None:
    script = tmp_path / "sharing.py"
    script.write_text(SHARING)
    run_together(n, script, tmp_path)

    found = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(n)]

    assert found == [[["a", "0"], ["b", "1"], ["c", str(2 % n)], ["d", str(3 % n)], ["e", str(4 % n)]]] * n
