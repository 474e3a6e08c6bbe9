"""Seconds for cross-validation: how many are left, and when a search for settings must stop."""

from __future__ import annotations

import math
import time
from typing import Any


class OutOfTime(Exception):
    """What a contender still has to do would not end in time."""


class Budget:
    """Seconds from now on, some of which may have been spent before.

    Examples
    --------
    >>> budget = Budget(60.0, spent=20.0)
    >>> budget.seconds, 39 < budget.left <= 40
    (60.0, True)
    """

    def __init__(self, seconds: float, spent: float = 0.0) -> None:
        self.seconds, self._start = seconds, time.perf_counter() - spent

    @property
    def spent(self) -> float:
        """Seconds that were spent."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left; negative if the budget was exceeded."""
        return self.seconds - self.spent


class Shared:
    """What the contenders of one fold share: bandwidths that were found, and the time at which a search must stop.

    A contender fits many models to choose its settings, and asks before each of them whether there is time for one more.

    Attributes
    ----------
    known : dict
        What one contender found and others use.
    fits : list of float
        Seconds of the latest contender between its questions.
    """

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.fits: list[float] = []
        self._end, self._latest = math.inf, time.perf_counter()

    def begin(self, seconds: float) -> None:
        """Give the next contender so many seconds."""
        self._latest = time.perf_counter()
        self._end = self._latest + seconds
        self.fits.clear()

    def check(self) -> None:
        """Raise `OutOfTime` if a fit that takes as long as the longest so far would end too late."""
        self.end()
        if self._latest + max(self.fits) > self._end:
            raise OutOfTime

    def end(self) -> None:
        """Note the seconds since the latest question."""
        now = time.perf_counter()
        self.fits.append(now - self._latest)
        self._latest = now
