"""Measures speed and memory on made-up data: one file a claim, listed in `__main__.py`."""
