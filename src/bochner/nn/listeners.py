"""Who listens to queries and keys while a model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LISTENERS: list[Callable[..., None]] = []


def listeners() -> tuple[Callable[..., None], ...]:
    """Those who listen now; while there are any, converted models compute exact attention."""
    return tuple(_LISTENERS)


@contextmanager
def listening(listener: Callable[..., Any]) -> Iterator[None]:
    """Have ``listener(module, q, k, causal=, key_mask=, scale=)`` called for each attention inside."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)
