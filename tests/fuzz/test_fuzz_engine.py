"""The oracle rejects callables that are wrong in every way it knows of, and passes right ones."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from bochner._validation import check_count, check_rows
from fuzz import exploring
from fuzz.engine import fingerprint, same_numbers, violation
from fuzz.exploring import explore
from fuzz.targets import Target, constant
from fuzz.values import MAKES, Value, masked, rows, with_entry


def raises(error: BaseException) -> Any:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    "call, message",
    [
        (raises(RuntimeError("no")), "raised RuntimeError"),
        (raises(ValueError("a long enough sentence of a foreign library")), "let ValueError escape from below"),
        (lambda: np.full(3, np.nan), "answered NaN"),
        (lambda: {"a": [1.0, float("nan")]}, "answered NaN"),
        (lambda: np.full(3, np.inf), "answered an infinity"),
        (lambda: (float("nan") for _ in range(2)), "answered NaN"),
    ],
)
def test_wrong_answers_are_rejected(call, message):
    found = violation(call)
    assert found is not None and message in found


def test_calls_that_do_not_end_are_rejected():
    found = violation(lambda: time.sleep(3600), seconds=0.01)
    assert found == "gave no answer within 0.01 seconds"


def test_right_answers_pass():
    assert violation(lambda: check_count("owner", "n", -1)) is None  # a refusal of ours
    assert violation(lambda: check_rows("owner", "text", 3)) is None
    assert violation(lambda: np.ones(3)) is None
    assert violation(lambda: np.full(3, np.nan), finite=False) is None
    assert violation(lambda: np.full(3, np.inf), bounded=False) is None


def test_accidents_inside_the_library_are_told_from_refusals():
    """The same ValueError type, raised by NumPy inside a line of ours and not by a `raise`."""
    found = violation(lambda: check_rows("owner", rows(), np.ones(2)))
    assert found is not None and "by chance" in found


# Targets that are wrong


class Account:
    """Counts in two steps, the second of which may be refused."""

    def __init__(self) -> None:
        self.count = self.total = 0

    def half(self, x: Any) -> None:
        self.count += 1
        self.total += check_count("Account", "x", x)

    def whole(self, x: Any) -> None:
        total = self.total + check_count("Account", "x", x)
        self.count, self.total = self.count + 1, total


def spoils_its_argument(X: np.ndarray) -> None:
    check_rows("spoils", X, 3)[0, 0] = 7.0


def forgets_the_mask(X: Any) -> np.ndarray:
    return check_rows("forgets", np.asarray(X), 3)


def depends_on_memory(X: Any) -> np.ndarray:
    return np.frombuffer(np.ascontiguousarray(X).tobytes()) if isinstance(X, np.ndarray) else np.zeros(18)


def test_half_changes_are_found():
    def target(method: str) -> Target:
        return Target(method, lambda subject, x: getattr(subject, method)(x), {"x": constant(1)}, subject=Account)

    with pytest.raises(AssertionError, match="half changed"):
        target("half").check({"x": Value("-1", constant(-1))})
    target("whole").check({"x": Value("-1", constant(-1))})


def test_changed_arguments_are_found():
    with pytest.raises(AssertionError, match="changed its argument X"):
        Target("spoils", spoils_its_argument, {"X": rows}).check({"X": Value("rows()", rows)})


def test_masks_and_missing_numbers_must_be_refused():
    target = Target("forgets", forgets_the_mask, {"X": rows})
    with pytest.raises(AssertionError, match="was accepted"):
        target.check({"X": Value("masked", masked, finite=False, refused=True)})
    target.check({"X": Value("NaN", lambda: with_entry(np.nan), finite=False, refused=True)})


def test_answers_that_depend_on_the_make_are_found():
    target = Target("depends", depends_on_memory, {"X": rows})
    wrong = []
    for name, make in target.makes():
        try:
            target.check_make(name, make)
        except AssertionError:
            wrong.append(make.name)
    assert {"big-endian rows", "rows().tolist()", "DataFrame"} <= set(wrong) and "rows()" not in wrong


def test_exploring_finds_what_few_arguments_show():
    """A callable that fails for one kind of value alone is found, and the value is named."""

    def fragile(x: Any) -> None:
        if isinstance(x, bytes):
            raise KeyError(x)

    target = Target("fragile", fragile, {"x": constant(1)})
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(AssertionError, match=r"fragile\(x=b'bytes'\) raised KeyError"),
    ):
        patch.setattr(exploring, "examples", 2000)
        explore(target.name, target.spoils(), target.check)


def test_makes_hold_the_same_numbers():
    for make in MAKES:
        if make.plain is not None:
            assert same_numbers(np.asarray(make.make(), dtype=float), make.plain()), make


def test_fingerprints_tell_changes():
    X = rows()
    before = fingerprint(X)
    X[0, 0] += 1e-12
    assert fingerprint(X) != before and fingerprint(lambda: None) is None
