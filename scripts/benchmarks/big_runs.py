"""Finished runs of many steps: those of the sample's test splits, repeated under other ids."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.frame import ROOT, measure_verb
from benchmarks.slow_server import PLAN

N_STEPS = 15_000
SPLITS = ("test_task", "test_website", "test_domain")


def write_data(folder: Path, n_steps: int = N_STEPS) -> None:
    """Writes the rows of a data set, 35 kB a step."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for split in SPLITS:
        source = ROOT / "seeact_offline" / "sample" / "hub" / "data" / f"{split}-00000-of-00001.parquet"
        table = pq.read_table(source)
        place = table.schema.get_field_index("annotation_id")
        target = folder / "data" / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(target, table.schema, compression="zstd") as writer:
            for round_ in range(_rounds(n_steps)):
                ids = pc.binary_join_element_wise(table["annotation_id"], pa.scalar(f"-{round_}"), "")
                writer.write_table(table.set_column(place, table.schema.field(place), ids), row_group_size=100)


def write_run(folder: Path, *words: object, data: Path | None = None, n_steps: int = N_STEPS) -> Path:
    """Runs `eval` with these options over the sample, and writes a run of its steps with the replies and calls of a
    server. `data`: what `write_data` wrote; None: the run's data cannot be opened."""
    from seeact_offline.dataset import open_split

    once = folder.with_name(f"{folder.name}-once")
    measure_verb(["eval", "--split", "all", "--cache", "off", "--quiet", "--out", once, *words])
    folder.mkdir()
    manifest = json.loads((once / "manifest.json").read_text())
    if data is not None:
        fingerprint = open_split(data, "all").fingerprint
        manifest["settings"] |= {"dataset": str(data), "dataset_fingerprint": fingerprint}
        manifest["identity"]["dataset_fingerprint"] = fingerprint
    (folder / "manifest.json").write_text(json.dumps(manifest))
    # says that all steps were reached
    shutil.copy(once / "results.json", folder)
    predictions = [_with_plans(line) for line in _lines(once / "predictions.jsonl")]
    calls = [call for line in predictions for call in _calls(line)]
    files = {"predictions": predictions, "targets": [*_lines(once / "targets.jsonl")], "calls": calls}
    for name, lines in files.items():
        with (folder / f"{name}.jsonl").open("w") as file:
            for round_ in range(_rounds(n_steps)):
                for line in lines:
                    again = {**line, "annotation_id": f"{line['annotation_id']}-{round_}"}
                    file.write(json.dumps(again) + "\n")
    measure_verb(["score", folder])
    return folder


def _rounds(n_steps: int) -> int:
    """Rounds of the sample's 588 steps."""
    return -(-n_steps // 588)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, path.read_text().splitlines())


def _with_plans(line: dict[str, Any]) -> dict[str, Any]:
    """The prediction with plans of a usual length, which the built-in model's are not."""
    for group in line["groups"]:
        group["replies"][0] += " " + PLAN[:1200]
    return line


def _calls(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    key = {name: line[name] for name in ("annotation_id", "action_uid")}
    for group in line["groups"]:
        for turn in range(1, len(group["replies"]) + 1):
            usage = {"calls": 1, "prompt_tokens": 3000, "completion_tokens": 300}
            record = {
                "attempts": 1,
                "seconds": 2.0,
                "request_id": "chatcmpl-0123456789abcdef",
                "asked": "0123456789ab",
                "usage": usage,
            }
            yield {**key, "group": group["group"], "turn": turn, **record}
