"""Finished results as tables of the paper, by name. Computes nothing. One more is one module and one line of TABLES."""

from __future__ import annotations

from seeact_offline.tables import markup
from seeact_offline.tables.drawing import Draw

TABLES: dict[str, Draw] = {
    "table5": markup.draw,
}
