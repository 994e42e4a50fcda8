"""The number of random cases that a test tries: all of them in `make nightly`, a quarter in `make test`."""

import os


def often(n: int) -> int:
    return n if os.environ.get("NIGHTLY") else n // 4
