"""Record tasks on web pages with headless Chromium, as rows of the hub's layout.

Before each action of a task, the recorder waits until the page is at rest, scrolls it to its top, and takes its DOM,
layout, accessibility tree and full-page picture through the DevTools protocol; then it carries out the action.
Elements, boxes and node identities are the browser's own. For a fixed page and browser the output is deterministic:
nodes are numbered by first appearance in the task, the clock stands still, and random numbers are seeded.
"""

from seeact_offline.recorder.browser import find_chromium
from seeact_offline.recorder.recording import Recorder, RecordFailed, RecordingFolder, RecordOptions
from seeact_offline.recorder.script import TaskScript, load_script

__all__ = ["RecordFailed", "RecordOptions", "Recorder", "RecordingFolder", "TaskScript", "find_chromium", "load_script"]
