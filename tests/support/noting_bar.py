"""A progress bar that nobody sees, and that notes what it is told."""

from typing_extensions import override

from consumer.terminal import Bar


class NotingBar(Bar):
    """What it was told, in order: ("read", steps) or ("explaining", cases)."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, int]] = []

    @override
    def __call__(self, steps: int) -> None:
        self.told.append(("read", steps))

    @override
    def explaining(self, total: int) -> None:
        self.told.append(("explaining", total))
