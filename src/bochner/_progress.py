"""The one door for progress bars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")

SECONDS_BEFORE_SHOWN = 2.0


def progress(
    items: Iterable[T], *, total: int | None = None, label: str = "", shown: bool = True, delay: float | None = None
) -> Iterable[T]:
    """The items, with a bar on stderr once they have taken more than a few seconds.

    Parameters
    ----------
    items : iterable
        What is walked over.
    total : int, optional
        How many there are, where ``len`` does not tell.
    label : str
        What is being done.
    shown : bool
        Whether there is a bar at all.
    delay : float, optional
        Seconds before it appears; 2 without it.

    Examples
    --------
    >>> list(progress(range(3), label="fit"))
    [0, 1, 2]
    """
    if not shown:
        return items
    from tqdm import tqdm  # the import costs more than many of the loops

    wait = SECONDS_BEFORE_SHOWN if delay is None else delay
    bar: Any = tqdm(items, total=total, desc=label, delay=wait, dynamic_ncols=True, leave=False)
    return bar  # type: ignore[no-any-return]
