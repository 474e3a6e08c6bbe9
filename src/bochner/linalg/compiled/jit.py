"""Compilation on first use: cached where a folder can be written, and announced if it takes long.

Numba keeps compiled code beside the source file, or in the user's cache folder.  If neither can be written, its own
decorator fails; here the code is then compiled again in each process.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

PATIENCE = 3.0  # seconds of compilation after which a line says what is going on
_LOGGER = logging.getLogger("bochner")


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """``numba.njit``, which also works where no folder can be written.

    Parameters
    ----------
    cache : bool
        Whether to keep compiled code for other processes, if possible.
    **options
        Passed on.
    """

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(cache=cache, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return numba.njit(**options)(function)

    return decorate


class Announcement(event.Listener):
    """Says once, after `PATIENCE` seconds of compilation, that code is compiled and whether it is kept."""

    def __init__(self) -> None:
        self._depth = 0
        self._timer: threading.Timer | None = None

    def on_start(self, found: Any) -> None:
        """Start to wait at the outermost of our functions."""
        if self._ours(found):
            self._depth += 1
            if self._depth == 1:
                self._timer = threading.Timer(PATIENCE, self.announce, [found.data["dispatcher"]])
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, found: Any) -> None:
        """Stop to wait."""
        if self._ours(found):
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()

    def announce(self, dispatcher: Any) -> None:
        """One line in the log, which Python shows on the standard error unless logging is configured."""
        event.unregister("numba:compile", self)
        kept = type(dispatcher._cache).__name__ != "NullCache"
        later = "later runs use the cached result" if kept else "to keep it, set NUMBA_CACHE_DIR to a writable folder"
        _LOGGER.warning("bochner compiles its inner loops for this processor, on first use; %s.", later)

    @staticmethod
    def _ours(found: Any) -> bool:
        return str(found.data["dispatcher"].py_func.__module__).startswith("bochner.")


event.register("numba:compile", Announcement())
