"""The oracle: what a call may do with any arguments at all.

A call either answers, without NaN if its arguments are finite, or raises a ValueError or TypeError that the library (or
scikit-learn's validation) raised on purpose, in one line.  It answers in time, and it changes no argument.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import itertools
import linecache
import math
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bochner

SECONDS = 240.0
"""Limit on one call, far above what any needs: the first may compile, and the machine may be slow and busy."""

OURS = str(Path(bochner.__file__).parent)
TRUSTED = (OURS, "/sklearn/")
"""Where a refusal may be raised: here, and by scikit-learn's validation of estimators' arguments."""


class OutOfTime(BaseException):
    """Raised inside a call that takes too long."""


@contextlib.contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt the body after ``seconds``; compiled code that cannot be interrupted ends the process, with a trace."""

    def interrupt(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds + 60, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def violation(
    call: Callable[[], Any], *, finite: bool = True, bounded: bool = True, seconds: float = SECONDS
) -> str | None:
    """What ``call`` did that it may not do, or None.

    Parameters
    ----------
    call : callable
        The call, with its arguments.
    finite : bool
        Whether all arguments are finite, so that the answer must hold no NaN.
    bounded : bool
        Whether all arguments are of moderate size too, so that the answer must hold no infinity.
    seconds : float
        Limit on its time.
    """
    try:
        with time_limit(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = consumed(call())
    except OutOfTime:
        return f"gave no answer within {seconds:g} seconds"
    except (ValueError, TypeError) as error:
        return unclear(error)
    except Exception as error:
        return f"raised {type(error).__name__}: {first_line(error)} at {place(error)}"
    if finite and holds(answer, np.isnan):
        return f"answered NaN to finite arguments: {first_line(answer)}"
    if finite and bounded and holds(answer, np.isinf):
        return f"answered an infinity to moderate arguments: {first_line(answer)}"
    return None


def unclear(error: Exception) -> str | None:
    """What is wrong with a refusal: raised by chance, or not said in a line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if not any(part in frame.filename for part in TRUSTED):
        return f"let {type(error).__name__} escape from below: {first_line(error)} at {place(error)}"
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    if OURS in frame.filename and not line.startswith("raise"):
        return f"failed by chance with {type(error).__name__}: {first_line(error)} at {place(error)}"
    message = str(error)
    if OURS in frame.filename and (len(message) < 15 or len(message) > 1000 or "\n" in message):
        return f"raised {type(error).__name__} whose message is not one line: {message[:300]!r} at {place(error)}"
    return None


def place(error: BaseException) -> str:
    """The last line of the library that the error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if OURS in frame.filename] or frames
    return f"{inside[-1].filename.removeprefix(OURS)}:{inside[-1].lineno}"


def first_line(value: Any) -> str:
    """The beginning of a text or value, on one line."""
    return " ".join(str(value).split())[:240]


def consumed(answer: Any) -> Any:
    """Enter and leave what is a context, take the first items of what is an iterator, and keep all else."""
    if isinstance(answer, contextlib.AbstractContextManager) and not hasattr(answer, "read"):
        with answer:
            return None
    return list(itertools.islice(answer, 3)) if isinstance(answer, Iterator) else answer


def holds(answer: Any, condition: Callable[[np.ndarray], np.ndarray], depth: int = 4) -> bool:
    """Whether the condition is true of any number in an answer: arrays, tensors, scalars, and what holds them."""
    if isinstance(answer, float | complex):
        return bool(condition(np.asarray(answer)))
    if isinstance(answer, np.ndarray | np.generic):
        return answer.dtype.kind in "fc" and bool(np.any(condition(answer)))
    if hasattr(answer, "is_meta"):
        return not answer.is_meta and answer.dtype.is_floating_point and holds(dense(answer), condition)
    if hasattr(answer, "__array_namespace__"):
        return holds(np.asarray(answer), condition)
    if hasattr(answer, "tocsr"):
        return holds(answer.tocsr().data, condition)
    if depth == 0:
        return False
    if isinstance(answer, dict):
        return any(holds(value, condition, depth - 1) for value in answer.values())
    if isinstance(answer, list | tuple):
        return any(holds(value, condition, depth - 1) for value in answer)
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        fields = (getattr(answer, field.name) for field in dataclasses.fields(answer))
        return any(holds(value, condition, depth - 1) for value in fields if isinstance(value, np.ndarray | float))
    return False


def dense(tensor: Any) -> np.ndarray:
    """The values of a torch tensor of any layout."""
    tensor = tensor.detach().cpu()
    return np.asarray((tensor.to_dense() if "sparse" in str(tensor.layout) else tensor).double())


def fingerprint(value: Any) -> bytes | None:
    """Bytes that change when the value does, or None for what cannot be compared so."""
    try:
        return pickle.dumps(
            value.toarray() if hasattr(value, "tocsr") else value
        )  # sparse ones note what they found out
    except Exception:  # lambdas, generators, open files, meta tensors
        return None


def same_numbers(answer: Any, expected: Any) -> bool:
    """Whether two answers hold the same numbers up to the rounding of the narrower type."""
    a, b = (np.asarray(dense(z) if hasattr(z, "is_meta") else z) for z in (answer, expected))
    if a.shape != b.shape or a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return a.shape == b.shape and bool(np.all(a == b))
    eps = max(np.finfo(z.dtype).eps if z.dtype.kind == "f" else 0.0 for z in (a, b))
    size = float(np.max(np.abs(b), initial=0.0))
    tolerance = 1000 * eps * (size if math.isfinite(size) else 1.0) + 1e-12
    return bool(np.allclose(a, b, rtol=1000 * eps, atol=tolerance, equal_nan=True))
