"""Compilation where no folder can be written, and the line that announces a long one."""

from __future__ import annotations

import contextlib
import logging
from typing import ClassVar

import numba
import pytest
from numba.core import event
from numba.core.caching import FunctionCache

from bochner.linalg.compiled import jit


def add(x, y):
    return x + y


def test_compiles_without_a_folder_for_the_cache(monkeypatch):
    monkeypatch.setattr(FunctionCache._impl_class, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(add)
    assert jit.njit(cache=True, nogil=True)(add)(1, 2) == 3


def test_other_errors_of_numba_pass(monkeypatch):
    def fail(**options):
        raise RuntimeError("no such processor")

    monkeypatch.setattr(numba, "njit", fail)
    with pytest.raises(RuntimeError, match="no such processor"):
        jit.njit(cache=True)(add)


class Timer:
    """Stands for `threading.Timer`: time passes when the test says so."""

    started: ClassVar[list[Timer]] = []

    def __init__(self, seconds, announce, arguments):
        self.seconds, self.announce, self.arguments = seconds, announce, arguments

    def start(self):
        self.started.append(self)

    def cancel(self):
        if self in self.started:
            self.started.remove(self)


@pytest.fixture
def timers(monkeypatch):
    monkeypatch.setattr(Timer, "started", [])
    monkeypatch.setattr(jit.threading, "Timer", Timer)
    return Timer.started


@pytest.fixture
def listener():
    listener = jit.Announcement()
    event.register("numba:compile", listener)
    yield listener
    with contextlib.suppress(ValueError):
        event.unregister("numba:compile", listener)


def compilation(monkeypatch, *, cached):
    """The events at the start and at the end of a compilation of ours."""
    compiled = numba.njit(cache=cached)(add)
    monkeypatch.setattr(compiled.py_func, "__module__", "bochner.linalg.compiled.example")
    return (
        event.Event("numba:compile", status, {"dispatcher": compiled})
        for status in (event.EventStatus.START, event.EventStatus.END)
    )


@pytest.mark.parametrize("cached, said", [(True, "later runs use the cached result"), (False, "NUMBA_CACHE_DIR")])
def test_long_compilation_is_announced_once(monkeypatch, caplog, timers, listener, cached, said):
    start, end = compilation(monkeypatch, cached=cached)
    with caplog.at_level(logging.WARNING, "bochner"):
        for _ in range(2):
            event.broadcast(start)
            for timer in [timer for timer in timers if timer.announce == listener.announce]:
                assert timer.seconds == jit.PATIENCE
                timers.remove(timer)
                timer.announce(*timer.arguments)
            event.broadcast(end)
    assert [said in record.message for record in caplog.records] == [True]


def test_short_compilation_is_not_announced(monkeypatch, timers, listener):
    start, end = compilation(monkeypatch, cached=False)
    event.broadcast(start)
    assert listener.announce in [timer.announce for timer in timers]
    event.broadcast(end)
    assert not timers
