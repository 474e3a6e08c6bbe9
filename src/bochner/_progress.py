"""Progress bars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")

SECONDS_BEFORE_SHOWN = 2.0  # shorter loops end before a bar could be read


def progress(
    items: Iterable[T], *, total: int | None = None, label: str = "", shown: bool = True, delay: float | None = None
) -> Iterable[T]:
    """Iterate over items, with a progress bar on stderr once this has taken more than a few seconds.

    Parameters
    ----------
    items : iterable
        The items.
    total : int, optional
        Number of items, if ``len`` does not tell.
    label : str
        Text in front of the bar.
    shown : bool
        Whether to show a bar at all.
    delay : float, optional
        Seconds before the bar appears; 2 by default.

    Returns
    -------
    iterable
        The same items.

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


def note(bar: Iterable[Any], text: str) -> None:
    """Write a text behind the bar of `progress`, if there is one.

    Examples
    --------
    >>> steps = progress(range(3), shown=False)
    >>> note(steps, "error 1e-3")                              # no bar, no text
    """
    write = getattr(bar, "set_postfix_str", None)
    if write is not None:
        write(text, refresh=False)
