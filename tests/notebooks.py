"""Executes the notebooks and writes them with their outputs: `make notebooks`, or `python -m tests.notebooks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lazily import nbformat

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
PATHS = tuple(sorted(FOLDER.glob("*.ipynb")))
WORDS = ("text/plain", "text/markdown")


def executed(path: Path) -> Any:
    """The notebook with the outputs of a fresh kernel. Progress, which goes to standard error, is left out.

    Raises CellExecutionError for a cell that fails.
    """
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(FOLDER)}}
    # a kernel sends one printed text in one or more pieces, as it pleases
    client = NotebookClient(notebook, timeout=240, record_timing=False, coalesce_streams=True, resources=folder)
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    # not the machine's own version of Python
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def texts(notebook: Any) -> list[str]:
    """All that the outputs say. Pictures are not compared: their bytes depend on fonts."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.get("text", "") + str(output.get("data", {}).get(kind, "")) for output in outputs for kind in WORDS]


if __name__ == "__main__":
    for path in PATHS:
        nbformat.write(executed(path), path)
        print(path.name)
