"""Set-of-mark observations of web agents: which elements of a `Screen` are marked, what is listed of them, and the marked picture."""

from seeact_offline.web_agents.marks.mark import Mark
from seeact_offline.web_agents.marks.visualwebarena_marks import (
    draw_visualwebarena,
    visualwebarena,
    visualwebarena_list,
)
from seeact_offline.web_agents.marks.webvoyager_marks import draw_webvoyager, webvoyager, webvoyager_list

__all__ = [
    "Mark",
    "draw_visualwebarena",
    "draw_webvoyager",
    "visualwebarena",
    "visualwebarena_list",
    "webvoyager",
    "webvoyager_list",
]
