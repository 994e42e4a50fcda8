"""The bundled sample: steps recorded on fictional websites, in the hub's layout. `README.md` beside this file is its card."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent
DATA = ROOT / "hub"
"""A data set folder as `load_steps` takes it."""
SITES = ROOT / "sites"
"""One folder a website: its pages and `tasks.yaml`."""
FONTS = ROOT / "fonts.conf"
"""A fontconfig file: text is drawn by it while recording."""
SCORES = ROOT / "scores"
"""Score files of the test splits by the sample's default ranker, named as those that runs keep. `scripts/build_sample.py --scores` makes them."""
