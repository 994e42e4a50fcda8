"""A small site with a task on it, for agents that act."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.recorder.browser import NAMES

REAL_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, NAMES)), reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
    ),
    pytest.mark.timeout(240),
]
PAGE = """<!doctype html><html><head><title>Shop</title><style>
body { margin: 0; font: 16px sans-serif; height: 3000px } button, input, select { position: absolute; left: 20px; height: 30px; width: 200px }
#box { position: absolute; left: 600px; top: 20px; width: 200px; height: 100px; overflow: auto; background: #ddd }
</style></head><body>
<p id=said style="position: fixed; left: 300px; top: 0">nothing</p>
<button id=buy style="top: 40px">Buy</button>
<input id=name style="top: 80px" value=old placeholder=Name>
<select id=size style="top: 120px"><option>Small</option><option>Large</option></select>
<input id=day type=date style="top: 160px">
<a id=tab style="position: absolute; left: 20px; top: 200px" href="other.html" target=_blank>Elsewhere</a>
<button id=ask style="top: 240px" onclick="say('confirm ' + confirm('Sure?'))">Ask</button>
<button id=low style="top: 2000px">Low</button>
<div id=box><div style="height: 900px; width: 50px">inside</div></div>
<a id=next style="position: absolute; left: 20px; top: 280px" href="other.html">Next</a>
<script>
const say = (text) => { document.getElementById('said').textContent = text; };
const buy = document.getElementById('buy'), name = document.getElementById('name');
for (const kind of ['click', 'dblclick', 'contextmenu', 'mouseover']) buy.addEventListener(kind, () => say(kind));
document.getElementById('low').addEventListener('click', () => say('low'));
document.getElementById('name').addEventListener('keydown', (e) => { if (e.key === 'Enter') say('entered ' + e.target.value); });
document.getElementById('size').addEventListener('change', (e) => say('size ' + e.target.value));
let from = null;
addEventListener('mousedown', (e) => { from = e.clientX; });
addEventListener('mouseup', (e) => { if (Math.abs(e.clientX - from) > 50) say('dragged ' + (e.clientX - from)); });
</script></body></html>"""
BOUGHT = [{"selector": "#said", "text": "click"}]
CLICK = {"op": "CLICK", "selector": "#buy"}


def write_site(
    folder: Path, page: str = PAGE, check: list[dict[str, Any]] | None = None, steps: list[dict[str, Any]] | None = None, **task: Any
) -> Path:  # fmt: skip
    """A site with one task; returns its script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(page)
    (folder / "other.html").write_text("<title>Other</title><h1>Other page</h1><button>Back</button>")
    one = {"task": "Buy it", "check": BOUGHT if check is None else check, "steps": steps or [CLICK], **task}
    content = {"website": "tiny", "domain": "Shopping", "serve": ".", "start": "index.html", "tasks": [one]}
    path = folder / "tasks.json"
    path.write_text(json.dumps({name: value for name, value in content.items() if name not in task or name == "tasks"}))
    return path
