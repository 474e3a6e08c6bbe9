"""Hostile values of every kind, and good values for every name of a parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from hypothesis import strategies as st

from bochner import kernels, maps, projections, rotations

N, D = 6, 3
"""Shape of the good rows."""


@dataclass(frozen=True)
class Value:
    """One argument: how it is made anew for each call, and what may be expected of answers to it."""

    name: str
    make: Callable[[], Any]
    finite: bool = True
    bounded: bool = True
    plain: Callable[[], np.ndarray] | None = None
    """The same numbers as an ordinary array, where the answer must not depend on the make."""
    refused: bool = False
    """Whether no rows may look like this."""

    def __repr__(self) -> str:
        return self.name


def rows(n: int = N, d: int = D, *, lead: tuple[int, ...] = (), scale: float = 0.5, seed: int = 0) -> np.ndarray:
    """Ordinary rows."""
    return scale * np.random.default_rng(seed).standard_normal((*lead, n, d))


def with_entry(entry: float, n: int = N, d: int = D) -> np.ndarray:
    X = rows(n, d)
    X[n // 2, d // 2] = entry
    return X


def strided() -> np.ndarray:
    wide = np.full((2 * N, 3 * D), np.nan)
    wide[::2, ::3] = rows()
    return wide[::2, ::3]


def read_only() -> np.ndarray:
    X = rows()
    X.flags.writeable = False
    return X


def masked() -> np.ma.MaskedArray:
    return np.ma.masked_greater(rows(), 0.3)


def _literal(value: Any, *, finite: bool = True, bounded: bool = True) -> Value:
    return Value(repr(value) if len(repr(value)) < 40 else f"{repr(value)[:30]}...", lambda: value, finite, bounded)


SCALARS = [
    *map(
        _literal, (None, True, False, "", "gaussian", "nonsense", "\x1b[31m", b"bytes", -1, 0, 1, 2, 3, 5, 2**40, 2**63)
    ),
    *map(
        _literal,
        (-1.5, 0.0, 0.5, 1.0, 1e-3, 1j, Fraction(1, 3), Decimal("0.5"), np.float32(0.5), np.int64(2), np.bool_(True)),
    ),
    *(_literal(value, bounded=False) for value in (1e-320, 1e-160, 1e30, 1e160, 1e300, -1e300, 10**400, 10**30)),
    *(
        _literal(value, finite=False)
        for value in (float("nan"), float("inf"), -float("inf"), complex("nan"), np.float64("nan"))
    ),
]

THINGS = [
    *map(_literal, ([], (), {}, set(), [[]], [1, 2, 3], (1, 1), [0.5, "x"], {"a": 1}, range(3), slice(None), ...)),
    Value("object()", object),
    Value("lambda: None", lambda: lambda *_: None),
    Value("iter(())", lambda: iter(())),
    Value("int", lambda: int),
    Value("Path('.')", lambda: __import__("pathlib").Path(".")),
    *(
        _literal(thing)
        for thing in (kernels.Gaussian(), kernels.Softmax(), kernels.Angular(), kernels.Gaussian((1.0, 2.0)))
    ),
    *(_literal(thing) for thing in (maps.Positive(), maps.Sign(), maps.Trigonometric(), maps.OptimalPositive())),
    *(
        _literal(thing)
        for thing in (projections.IID(), projections.Simplex(), projections.GaussHermite(3), rotations.Hadamard())
    ),
    Value("kernels.Gaussian", lambda: kernels.Gaussian),
    Value("maps.Positive", lambda: maps.Positive),
]

MAKES = [
    Value("rows()", rows, plain=rows),
    Value("rows().astype(float32)", lambda: rows().astype(np.float32)),
    Value("rows().astype(float16)", lambda: rows().astype(np.float16)),
    Value("rows().tolist()", lambda: rows().tolist(), plain=rows),
    Value("read-only rows", read_only, plain=rows),
    Value("strided rows", strided, plain=rows),
    Value("rows in Fortran order", lambda: np.asfortranarray(rows()), plain=rows),
    Value("big-endian rows", lambda: rows().astype(">f8"), plain=rows),
    Value("masked rows, none masked", lambda: np.ma.masked_array(rows(), mask=False), plain=rows),
    Value("DataFrame", lambda: pd.DataFrame(rows(), columns=list("abc")), plain=rows),
    Value("tensor", lambda: torch.tensor(rows()), plain=rows),
    Value(
        "integer rows",
        lambda: np.arange(N * D).reshape(N, D) % 5,
        plain=lambda: np.arange(N * D).reshape(N, D) % 5 * 1.0,
    ),
    Value("boolean rows", lambda: rows() > 0, plain=lambda: (rows() > 0) * 1.0),
]
"""The same rows in every make that may be accepted."""

ARRAYS = [
    *MAKES,
    Value("masked rows", masked, finite=False, refused=True),
    Value("rows of objects", lambda: rows().astype(object)),
    Value("rows of text", lambda: rows().astype(str)),
    Value("complex rows", lambda: rows() + 1j, refused=True),
    Value("long double rows", lambda: rows().astype(np.longdouble)),
    Value("dates", lambda: np.zeros((N, D), "datetime64[s]"), refused=True),
    Value("records", lambda: np.zeros(N, [("a", float)])),
    Value("ragged lists", lambda: [[1.0, 2.0, 3.0], [1.0]]),
    Value("csr rows", lambda: scipy.sparse.csr_array(rows())),
    Value("coo rows", lambda: scipy.sparse.coo_matrix(rows())),
    Value("DataFrame with text", lambda: pd.DataFrame({"a": [1.0] * N, "b": ["x"] * N, "c": [2.0] * N})),
    Value("DataFrame with missing numbers", lambda: pd.DataFrame(with_entry(np.nan)), finite=False, refused=True),
    Value("empty DataFrame", pd.DataFrame),
    Value("Series", lambda: pd.Series(rows()[:, 0])),
    Value("tensor of a leaf", lambda: torch.tensor(rows(), requires_grad=True)),
    Value("tensor in float32", lambda: torch.tensor(rows(), dtype=torch.float32)),
    Value("tensor in bfloat16", lambda: torch.tensor(rows(), dtype=torch.bfloat16)),
    Value("tensor of integers", lambda: torch.ones(N, D, dtype=torch.int64)),
    Value("complex tensor", lambda: torch.ones(N, D, dtype=torch.complex64)),
    Value("sparse tensor", lambda: torch.tensor(rows()).to_sparse()),
    Value("meta tensor", lambda: torch.tensor(rows(), device="meta"), finite=False),
    Value("empty tensor", lambda: torch.ones(0, D, dtype=torch.float64)),
    Value("tensor with NaN", lambda: torch.tensor(with_entry(np.nan)), finite=False),
    Value("rows with NaN", lambda: with_entry(np.nan), finite=False, refused=True),
    Value("rows with inf", lambda: with_entry(np.inf), finite=False, refused=True),
    Value("rows with -inf", lambda: with_entry(-np.inf), finite=False, refused=True),
    Value("rows with 1e160", lambda: with_entry(1e160), bounded=False),
    Value("rows with 1e300", lambda: with_entry(1e300), bounded=False),
    Value("rows of 1e200", lambda: 1e200 * rows(), bounded=False),
    Value("rows of 1e38 in float32", lambda: (1e38 * rows()).astype(np.float32), bounded=False),
    Value("rows of 1e4", lambda: 1e4 * rows(), bounded=False),
    Value("rows of 1e-200", lambda: 1e-200 * rows()),
    Value("rows of zeros", lambda: np.zeros((N, D))),
    Value("no rows", lambda: rows(0)),
    Value("no columns", lambda: rows(N, 0)),
    Value("nothing", lambda: np.zeros(0)),
    Value("one row", lambda: rows(1)),
    Value("one number", lambda: np.array(0.5)),
    Value("one vector", lambda: rows(1)[0]),
    Value("narrow rows", lambda: rows(N, D - 1)),
    Value("wide rows", lambda: rows(N, D + 1)),
    Value("batches of rows", lambda: rows(lead=(2,))),
    Value("two copies of a row", lambda: np.repeat(rows(1), 2, axis=0)),
    Value("column", lambda: rows(N, 1)),
    Value("labels", lambda: np.arange(N) % 2),
    Value("text labels", lambda: np.array(["a", "b"] * (N // 2))),
    Value("targets", lambda: rows()[:, 0]),
    Value("targets with NaN", lambda: with_entry(np.nan)[:, 1], finite=False),
    Value("targets of 1e300", lambda: 1e300 * rows()[:, 0], bounded=False),
]


def generated_rows() -> st.SearchStrategy[Value]:
    """Rows of any small shape, scale and type."""

    def value(n: int, d: int, lead: tuple[int, ...], exponent: int, dtype: str, seed: int) -> Value:
        def make() -> np.ndarray:
            with np.errstate(over="ignore", under="ignore"):
                return rows(n, d, lead=lead, scale=10.0**exponent, seed=seed).astype(dtype)

        name = f"rows({n}, {d}, lead={lead}, scale=1e{exponent}, seed={seed}).astype({dtype!r})"
        return Value(name, make, bool(np.isfinite(make()).all()), exponent < 1)

    return st.builds(
        value,
        st.integers(0, 9),
        st.integers(0, 9),
        st.sampled_from([(), (), (), (2,), (0,)]),
        st.sampled_from([0, 0, 0, -3, -9, -200, 1, 3, 9, 30, 200, 307]),
        st.sampled_from(["float64", "float64", "float32", "float16"]),
        st.integers(0, 99),
    )


HOSTILE: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(ARRAYS), st.sampled_from(SCALARS), st.sampled_from(THINGS), generated_rows()
)
"""Any value."""

NUMBERS: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(SCALARS),
    st.builds(_literal, st.integers(-3, 9)),
    st.builds(_literal, st.floats(-4, 4).filter(lambda x: abs(x) > 1e-9)),
)
"""Mostly numbers, for parameters that expect one."""
