"""The first few of very many names, kept up to date without looking at all of them each time (contract.md, "Ties")."""

from collections.abc import Callable, Collection, Sequence
from heapq import nsmallest
from math import isqrt
from typing import Any

SortKey = Callable[[str], tuple[Any, str]]

_LEAST_KEPT = 64
_LEAST_TOUCHED = 4096


class LowestNames:
    """The names with the lowest keys, as of the last look, and those whose key may have moved since.

    Each name that is neither kept nor touched has a key of at least `_bound`, so that a look need not visit it.
    """

    __slots__ = ("_bound", "_kept", "_touched")

    def __init__(self) -> None:
        self._kept: Sequence[str] = ()
        self._touched: set[str] | None = None  # None: nothing is known, look at all
        self._bound: tuple[Any, str] | None = None  # None: no name is out of sight

    def touch(self, name: str, names: Collection[str]) -> None:
        """Note that a name came, went or got another key; `names` are all there are now."""
        touched = self._touched
        if touched is None:
            return
        touched.add(name)
        if len(touched) > _LEAST_TOUCHED and len(touched) > len(names) >> 4:
            self._touched = None

    def first(self, count: int, names: Collection[str], key: SortKey) -> list[str]:
        """Give the `count` names with the lowest keys, in their order."""
        if len(names) <= _LEAST_KEPT:  # nothing is out of sight, and nothing worth remembering
            self._kept, self._touched, self._bound = (), None, None
            return nsmallest(count, names, key=key)
        keep = max(_LEAST_KEPT, isqrt(len(names)))
        in_sight = self._in_sight(names, key)
        if in_sight is None or (len(in_sight) < count and self._bound is not None):
            self._bound, in_sight = None, names
        ranked = nsmallest(keep + 1, in_sight, key=key)
        if len(ranked) > keep:
            self._bound = key(ranked.pop())
        self._kept, self._touched = ranked, set()
        return ranked[:count]

    def _in_sight(self, names: Collection[str], key: SortKey) -> Collection[str] | None:
        if self._touched is None:
            return None
        present = [name for name in self._touched.union(self._kept) if name in names]
        bound = self._bound
        return present if bound is None else [name for name in present if key(name) < bound]
