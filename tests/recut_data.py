"""SeeClick's and ShowUI's Mind2Web in small: two tasks on drawn pictures, in the released layouts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

SIZE = (400, 200)
IMAGES = "ming2web_images"
Action = dict[str, Any]


def action(uid: str, op: str, value: str = "", box: Any = (40.0, 20.0, 80.0, 30.0), recorded: str = "") -> Action:
    """`box`: x, y, width and height; None: the action has none."""
    made: Action = {"action_uid": uid, "operation": {"original_op": recorded or op, "value": value, "op": op}}
    if isinstance(box, tuple):
        box = dict(zip(("x", "y", "width", "height"), box, strict=True))
    return made if box is None else made | {"bbox": box}


def task(name: str, *actions: Action, texts: Sequence[str] | None = None) -> dict[str, Any]:
    listed = [f"[button]  Thing {i} -> {(one['operation'] or {}).get('op')}" for i, one in enumerate(actions)]
    return {
        "website": "shop", "domain": "Shopping", "subdomain": "General", "annotation_id": name,
        "confirmed_task": f"Buy {name}", "action_reprs": list(texts or listed), "actions": list(actions),
    }  # fmt: skip


TASKS = (
    task("a-1", action("u-0", "CLICK"), action("u-1", "TYPE", "New York", (200.0, 100.0, 60.0, 24.0)), action("u-2", "SELECT", "Two", (9.0, 150.0, 90.0, 40.0))),
    task("b-2", action("u-0", "CLICK", box=(300.5, 10.25, 44.0, 18.0), recorded="HOVER"), action("u-3", "CLICK", box=(0.0, 0.0, 30.0, 30.0), recorded="ENTER")),
)  # fmt: skip


def write_seeclick(folder: Path, tasks: Sequence[Mapping[str, Any]] = TASKS, split: str = "test_website") -> Path:
    """A folder with `mind2web_data_SPLIT.json` beside `ming2web_images`; an action whose `action_uid` begins with `lost` has no picture."""
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    for one in tasks:
        for number, act in enumerate(one["actions"]):
            if not str(act["action_uid"]).startswith("lost"):
                draw(folder / IMAGES / f"{one['annotation_id']}-{act['action_uid']}.jpg", number)
    (folder / f"mind2web_data_{split}.json").write_text(json.dumps(list(tasks)))
    return folder


def write_showui(folder: Path, tasks: Sequence[Mapping[str, Any]] = TASKS, name: str = "test_full") -> Path:
    """A folder with `metadata/hf_NAME.json` and `images`, of steps of cross_website; as released, without actions that have no picture."""
    made = write_seeclick(folder / "seeclick", tasks) / IMAGES
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    made.rename(folder / "images")
    steps: list[dict[str, Any]] = []
    for one in tasks:
        acts: list[Action] = []
        texts: list[str] = []
        for number, (act, text) in enumerate(zip(one["actions"], one["action_reprs"], strict=True)):
            picture = f"{one['annotation_id']}-{act['action_uid']}.jpg"
            if (folder / "images" / picture).exists():
                steps.append({
                    "split": "test_website", "id": f"mind2web_{len(steps)}", "annot_id": one["annotation_id"], "action_uid": act["action_uid"],
                    "website": one["website"], "domain": one["domain"], "subdomain": one["subdomain"], "task": one["confirmed_task"],
                    "img_url": picture, "img_size": list(SIZE), "step_id": number, "step": act, "step_repr": text,
                    "step_history": acts[:], "repr_history": texts[:],
                })  # fmt: skip
                acts.append(act)
                texts.append(text)
    (folder / "metadata" / f"hf_{name}.json").write_text(json.dumps(steps, indent=4))
    return folder


def draw(path: Path, shade: int = 0) -> None:
    image = Image.new("RGB", SIZE, (250, 250 - 20 * shade, 240))
    image.paste((20, 60, 120), (40, 20, 120, 50))
    image.save(path)
