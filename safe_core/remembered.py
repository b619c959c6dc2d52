"""What was worked out lately and may be asked for again, in bounded memory."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(dict[K, V], Generic[K, V]):
    """A dict that forgets everything once it holds `most` entries; to look something up costs what it costs in a dict.

    To forget the oldest one alone would need an order to be kept at each look-up.
    """

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def keep(self, key: K, value: V) -> V:
        """Remember a value, and return it."""
        if len(self) >= self.most:
            self.clear()
        self[key] = value
        return value
