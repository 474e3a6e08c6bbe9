"""Compilation where no folder can be written, and the line that announces a long one."""

from __future__ import annotations

import logging
import time

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


@pytest.mark.parametrize("cached, said", [(True, "later runs use the cached result"), (False, "NUMBA_CACHE_DIR")])
def test_long_compilation_is_announced_once(monkeypatch, caplog, cached, said):
    monkeypatch.setattr(jit, "PATIENCE", 0.01)
    listener = jit.Announcement()
    event.register("numba:compile", listener)
    compiled = numba.njit(cache=cached)(add)
    monkeypatch.setattr(compiled.py_func, "__module__", "bochner.linalg.compiled.example")
    with caplog.at_level(logging.WARNING, "bochner"):
        for _ in range(2):
            started = event.Event("numba:compile", event.EventStatus.START, {"dispatcher": compiled})
            event.broadcast(started)
            time.sleep(0.05)
            event.broadcast(event.Event("numba:compile", event.EventStatus.END, {"dispatcher": compiled}))
    assert [record.message for record in caplog.records if said in record.message]
    assert len(caplog.records) <= 2  # this listener, and the one of the library
