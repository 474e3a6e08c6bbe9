"""Any map of the softmax or Gaussian kernel, in the coordinates of a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._arrays import like
from .._validation import check_flag, check_instance
from ..kernels import Kernel, Softmax
from ..projections import Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._exponential import ExponentialMap
from ._features import Features, Quadratic, QuadraticSide, Scaled, squared_norms
from ._frame import Frame
from ._generalized import OptimalPositive
from ._map import Coupling, Layout, Map

_SOFTMAX = Softmax()
MOST_DIMENSIONS = 4096  # largest dimension in which a frame is fitted: its matrix has 128 MiB there, and takes a minute


class InFrame(ExponentialMap):
    """Base class of maps that work in a frame, with fields ``center``, ``balance`` and ``frame``."""

    center: bool
    balance: bool
    frame: Frame | None

    def _check_frame(self) -> None:
        name = type(self).__name__
        check_flag(name, "center", self.center)
        check_flag(name, "balance", self.balance)
        if self.frame is not None:
            check_instance(name, "frame", self.frame, Frame, "maps.Frame(a, b, M)")

    @property
    def _has_frame(self) -> bool:
        """Whether the frame is known: given, or asked to be none."""
        return self.frame is not None or not (self.center or self.balance)

    @property
    def _same_for_both(self) -> bool:
        """Whether queries and keys have the same frame: one centre, and an orthogonal M."""
        return self._has_frame if self.frame is None else self.frame.symmetric

    def worth_trying(self, projection: Projection) -> bool:
        """Only with rows of an exact law: in a good frame the coupling of the rows matters little."""
        return projection.gaussian_rows

    def sharing(self, planned: Map) -> Map:
        """Return the map with the frame of another one: fitting the frame takes longest."""
        return replace(self, frame=planned.frame) if isinstance(planned, InFrame) else self  # type: ignore[type-var]

    def effect(self, facts: Any) -> str:
        """Effect of the frame, in words."""
        return "" if self.frame is None else self.frame.effect(facts.sum2)

    def _fitted(self, data: Data, kernel: Kernel | None) -> Frame:
        """The frame that was given, or that of the data."""
        if self.frame is not None:
            return self.frame
        if data.d > MOST_DIMENSIONS:
            raise ValueError(
                f"{type(self).__name__}: a frame has d x d numbers and is fitted up to d = {MOST_DIMENSIONS}, got "
                f"d = {data.d}; use OptimalPositive(), or give frame=maps.Frame(a, b, M)."
            )
        gaussian = not isinstance(kernel, Softmax)
        return Frame.fitted(data, center=self.center, balance=self.balance, gaussian=gaussian)

    def _planned_frame(self, d: int) -> Frame:
        if self.frame is None:  # planned, so there was none to fit
            return Frame(np.zeros(d), np.zeros(d), np.eye(d))
        if self.frame.d != d:
            raise ValueError(f"{type(self).__name__}: the frame is one of {self.frame.d} dimensions, the data has {d}.")
        return self.frame

    def _inside(self, data: Data, frame: Frame) -> Data:
        X = frame.inside(data.X, key=False)
        return Data(X, X if data.same and frame.symmetric else frame.inside(data.Y, key=True), weights=data.weights)

    def _case_inside(self, case: ErrorCase) -> ErrorCase:
        """The points of the case in the frame, where the kernel is softmax."""
        frame = self._planned_frame(case.d)
        if frame.key_matrix is not None:
            raise ValueError(
                f"{type(self).__name__}: no closed form of the error is known for a frame with a key_matrix, whose "
                f"estimates have a bias; measure it on draws."
            )
        X, Y = frame.inside(case.X, key=False), frame.inside(case.Y, key=True)
        return replace(case, kernel=_SOFTMAX, X=X, Y=Y)

    def _outside(self, case: ErrorCase, error: np.ndarray) -> np.ndarray:
        """An error in the frame as one of the kernel itself: the known factors squared."""
        frame = self._planned_frame(case.d)
        queries, keys = (side_factor(frame, Z, case.kernel, key=key) for Z, key in ((case.X, False), (case.Y, True)))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.where(error == 0, 0.0, error * np.exp(2 * (queries + keys.T))))


def side_factor(frame: Frame, X: Any, kernel: Kernel | None, *, key: bool) -> Any:
    """Logarithm of the known factor of one side, (..., n, 1): the frame's offset, and the norms of the Gaussian kernel."""
    offset = frame.offset(X, key=key)
    if isinstance(kernel, Softmax):
        return offset
    return offset - squared_norms(X - like(frame.origin, X)) / 2


def framed_quadratic(inner: Quadratic | None, frame: Frame, kernel: Kernel | None) -> Quadratic | None:
    r"""The quadratic form of features in a frame, from that of the inner features; None if there is none.

    In the coordinates of the frame the known factor is linear as well: with :math:`x = M^{-T}x' + a`,
    :math:`b\cdot x - a\cdot b/2 = M^{-1}b\cdot x' + a\cdot b/2`, and likewise for keys.  So nothing is expanded about a
    point far from the data, and rounding stays that of the features themselves.  The norms of the Gaussian kernel do not
    have this form.
    """
    if inner is None or not isinstance(kernel, Softmax):
        return None
    queries, keys = _side(inner.queries, frame, key=False), _side(inner.keys, frame, key=True)
    return Quadratic(queries, keys, inner.signs)


def _side(inner: QuadraticSide, frame: Frame, *, key: bool) -> QuadraticSide:
    centre, T = frame.coordinates(key=key)
    slope = frame.query_center if key else frame.key_center
    rows = inner.rows + np.linalg.solve(T, slope)
    constant = centre @ slope - float(frame.query_center @ frame.key_center) / 2
    return QuadraticSide(rows, inner.constants + constant, inner.c, centre + frame.origin, T)


@dataclass(frozen=True)
class Framed(InFrame):
    r"""A map in a frame: centred and balanced coordinates of queries and keys, fitted to data.

    An exact change of coordinates that keeps the estimate unbiased and positive features positive, and makes the vectors
    whose length determines the error, :math:`x + y` for positive features, as short as possible.  It costs
    :math:`O(d^2)` per row.  Use it for positive features of data that are not centred, or whose queries and keys differ
    in scale.

    Parameters
    ----------
    map : Map
        Any map of the softmax kernel; its constants are chosen in the frame.
    center : bool
        Whether queries and keys are measured from their means.
    balance : bool
        Whether their covariances are made equal and diagonal.
    frame : Frame, optional
        A frame fitted elsewhere; fitted to the data by default.

    See Also
    --------
    DenseExponential : Positive features with a constant for each coordinate of the frame.

    Notes
    -----
    With the frame :math:`x' = M^T(x-a)`, :math:`y' = M^{-1}(y-b)` (see `Frame`),

    .. math:: \log\phi_q(x) = \log\phi'_q(x') + b\cdot x - \tfrac12 a\cdot b, \qquad
              \log\phi_k(y) = \log\phi'_k(y') + a\cdot y - \tfrac12 a\cdot b

    for softmax; for the Gaussian kernel the same, with :math:`-|x|^2/2` and :math:`-|y|^2/2` added.  Cosines depend on
    x - y alone: for them centring only matters where queries and keys have different means.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = 0.3 * np.random.default_rng(0).standard_normal((100, 4)) + 1.0
    >>> plain, framed = (Approximation(kernels.Softmax(), m) for m in (maps.Positive(), maps.Framed(maps.Positive())))
    >>> bool(framed.mse(X).mean() < plain.mse(X).mean() / 1000)
    True
    """

    map: Map = OptimalPositive()
    center: bool = True
    balance: bool = True
    frame: Frame | None = None
    formula: ClassVar[str] = r"\phi'_i(Tx - a)\,e^{b\cdot x - a\cdot b/2}"
    cost: ClassVar[str] = r"O(d)\text{, and }O(d^2)\text{ per point}"

    def __post_init__(self) -> None:
        check_instance("Framed", "map", self.map, Map, "maps.OptimalPositive()")
        if not self.map.serves(_SOFTMAX) or isinstance(self.map, InFrame):
            raise ValueError(
                f"Framed: {self.map!r} cannot be used in a frame; use a map of the softmax kernel without one."
            )
        self._check_frame()

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the map that gains most; hyperbolic, Poisson and geometric features in a frame are worse than it."""
        return {"framed-optimal-positive": cls(OptimalPositive())}

    @property
    def references(self) -> tuple[str, ...]:  # type: ignore[override]
        """References of the inner map."""
        return self.map.references

    @property
    def family(self) -> str:  # type: ignore[override]
        """Family of the inner map."""
        return self.map.family

    def why(self, facts: Any) -> str:
        """Sentence of the inner map."""
        return self.map.why(facts)

    @property
    def uses_rows(self) -> bool:  # type: ignore[override]
        """Whether the inner map uses rows."""
        return self.map.uses_rows

    @property
    def coupling(self) -> Coupling:
        return self.map.coupling

    @property
    def planned(self) -> bool:
        return self._has_frame and self.map.planned

    def unbiased(self, projection: Projection) -> bool:
        return self.map.unbiased(projection)

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Fit the frame, and choose the constants of the map in it."""
        frame = self._fitted(data, kernel)
        return replace(self, frame=frame, map=self.map.plan(self._inside(data, frame), projection, _SOFTMAX, rng, m))

    def layout(self, projection: Projection) -> Layout:
        inner = self.map.layout(projection)
        return inner._replace(symmetric=inner.symmetric and self._same_for_both)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        frame = self._planned_frame(draws.d)
        return FramedFeatures(self.map.draw(draws, _SOFTMAX), frame, kernel, symmetric=self._same_for_both)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of the inner map at the points in the frame."""
        return self._outside(case, self.map.mse(self._case_inside(case)))


class FramedFeatures(Features):
    """Features in a frame: those of an inner map at other points, times known factors."""

    def __init__(self, inner: Features, frame: Frame, kernel: Kernel | None, *, symmetric: bool) -> None:
        self.inner, self.frame, self.kernel = inner, frame, kernel
        self.width, self.positive = inner.width, inner.positive
        self.symmetric = inner.symmetric and symmetric

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """The inner features at the points in the frame; the known factor goes to the logarithm."""
        mantissa, logarithm = self.inner.scaled(self.frame.inside(X, key=key), key=key)
        factor = side_factor(self.frame, X, self.kernel, key=key)
        return mantissa, factor if logarithm is None else logarithm + factor

    def quadratic(self) -> Quadratic | None:
        """Quadratic form of the inner features, in the coordinates of the frame."""
        return framed_quadratic(self.inner.quadratic(), self.frame, self.kernel)
