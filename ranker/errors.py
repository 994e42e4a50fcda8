"""The error of a refused checkpoint, text or setting: one sentence that a person can act on."""


class RankerError(ValueError):
    """A checkpoint, text or setting that cannot be used: one sentence, `argument: expected ..., got ...`."""

    def __init__(self, argument: str, expected: str, got: str) -> None:
        super().__init__(argument, expected, got)
        self.argument, self.expected, self.got = argument, expected, got

    def __str__(self) -> str:
        return f"{self.argument}: expected {self.expected}, got {self.got}"
