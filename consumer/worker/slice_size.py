"""How much one transaction of a partition may hold: less after slow commits, more after quick ones.

What a commit that was given up has sent is not taken back: it stays in the log, and in the quota of the broker. Sent
again in full, it uses up what it waits for, and no commit ever succeeds. So the size follows the time of commits:

| a commit                                     | the next one may hold              |
|----------------------------------------------|------------------------------------|
| was given up at its deadline                 | half of what this one held         |
| took more than half of its deadline          | half as much as before             |
| took between a quarter and half of it        | as much as before                  |
| took less than a quarter                     | twice as much, up to a full slice, |
|                                              | at most eight times in a deadline  |

Where time grows with size, what doubles after less than a quarter takes less than half: the size settles in between. A
quota lets a burst pass and delays what follows: the pause lets a larger size show what it costs. With a longer pause a
worker would stay slow for minutes after an outage of the brokers, in which commits are given up too.
"""

from math import inf

_LEAST_SHARE = 1 / 8_192
"""A slice of this share is always one record."""


_GROWTHS = 8
"""How often the size may double within one deadline."""


class SliceSize:
    """The share of a full slice that a partition's next transaction may hold, from above 0 to 1; times in seconds."""

    def __init__(self, deadline: float = inf) -> None:
        self.share = 1.0
        self._deadline = deadline
        self._changed_at = -inf

    def committed(self, began: float, now: float) -> None:
        """A commit has succeeded."""
        took = now - began
        if took > self._deadline / 2:
            self._change(self.share / 2, now)
        elif self.share < 1 and took < self._deadline / 4 and now - self._changed_at > self._deadline / _GROWTHS:
            self._change(self.share * 2, now)

    def gave_up(self, held: float, now: float) -> None:
        """A commit that held this share of a full slice was given up at its deadline."""
        self._change(min(self.share, held) / 2, now)

    def _change(self, share: float, now: float) -> None:
        self.share = min(1.0, max(_LEAST_SHARE, share))
        self._changed_at = now
