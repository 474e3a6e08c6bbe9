"""Exponential features with a constant for each coordinate of a frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._arrays import array_namespace, like
from .._validation import shown
from ..kernels import Kernel, Softmax
from ..projections import Projection
from ._data import Data
from ._drawing import Draws, Nodes
from ._error import ErrorCase
from ._exponential import circle
from ._features import Features, Quadratic, QuadraticSide, Scaled, as_tuple
from ._frame import Frame
from ._framed import InFrame, framed_quadratic, side_factor
from ._map import Coupling, Layout, Map


@dataclass(frozen=True)
class DenseExponential(InFrame):
    r"""Positive features with a constant for each coordinate of a centred, balanced frame.

    The default for the softmax kernel.  These positive features have the smallest mean log second moment among all
    frames and constants.  `Approximation.plan` fits the frame and the constants.  Use it for attention, softmax
    sampling and Nadaraya-Watson averages, if there are data to fit it to.

    Parameters
    ----------
    center, balance : bool
        Whether queries and keys are measured from their means, and whether their second moments are made equal and
        diagonal.
    A : sequence of complex, optional
        The constants, one per coordinate of the frame, with real parts below 1/8; by default the best for the data.
    s : sequence of {1, -1}, optional
        Signs; by default all 1, which positive features require.  -1 gives cosines of that coordinate.
    frame : Frame, optional
        A frame fitted elsewhere; fitted to the data by default.

    See Also
    --------
    OptimalPositive : One constant for all coordinates, without a frame.
    Framed : Any map in a frame.

    Notes
    -----
    In the frame, with :math:`B_i = \sqrt{s_i(1-4A_i)}` and w ~ N(0, I),

    .. math:: \log\phi'(x') = \sum_i\Big[A_iw_i^2 + B_iw_ix_i' - \tfrac{s_i}{2}x_i'^2 + \tfrac14\log(1-4A_i)\Big]

    for queries, with :math:`s_iB_i` for :math:`B_i` on the side of the keys; the estimate is the mean of the real part
    of products.  Equal constants and s = 1 are `OptimalPositive`.  The mean log second moment over independent pairs is
    least at :math:`\rho_i = 2/((2V_i+1) + \sqrt{(2V_i+1)^2 + 8V_i})`, :math:`A_i = (1 - 1/\rho_i)/8 \le 0`, with
    :math:`V_i` the mean of :math:`(x_i'+y_i')^2`, and the centred, balanced frame is the best of all frames.
    ``center=False`` is FAVOR# of the literature: SDERF where queries and keys share their statistics, ADERF otherwise.

    The constants are sums over the rows of W, which are formed once at the draw.

    References
    ----------
    likhosherstov2023 (dense-exponential random features); centring is a contribution of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((200, 4)) * [2, 1, 0.5, 0.1] + 1, rng.standard_normal((200, 4)) * [0.1, 0.5, 1, 2]
    >>> plans = [Approximation(kernels.Softmax(), m, n_projections=64).plan(X, Y)
    ...          for m in (maps.OptimalPositive(), maps.DenseExponential())]
    >>> plans[1].positive, plans[1].symmetric
    (True, False)
    """

    center: bool = True
    balance: bool = True
    A: tuple[complex, ...] | None = None
    s: tuple[int, ...] | None = None
    frame: Frame | None = None
    formula: ClassVar[str] = r"e^{\sum_k A_kw_{ik}^2 + B_kw_{ik}x_k' - s_kx_k'^2/2}"
    cost: ClassVar[str] = r"O(d)\text{, and }O(d^2)\text{ per point}"
    references: ClassVar[tuple[str, ...]] = ("likhosherstov2023",)

    def __post_init__(self) -> None:
        self._check_frame()
        if self.A is not None:
            object.__setattr__(self, "A", _constants(self.A))
        if self.s is not None:
            object.__setattr__(self, "s", _signs(self.s))

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return the map with centring, and the published one without."""
        return {"dense": cls(), "dense-uncentred": cls(center=False)}

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        return cls() if isinstance(kernel, Softmax) else None

    @property
    def planned(self) -> bool:
        return self._has_frame and self.A is not None

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X, Y) with data, or give A and center=False, balance=False"

    @property
    def coupling(self) -> Coupling:
        """Simplex rows, as for all positive features."""
        return "simplex"

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Fit the frame, then choose the constant of smallest variance for each of its coordinates."""
        frame = self._fitted(data, kernel) if not self._has_frame else self._planned_frame(data.d)
        if self.A is not None:
            return replace(self, frame=frame)
        inside, s = self._inside(data, frame), np.ones(data.d) if self.s is None else np.array(self.s)
        x, y = inside.queries, inside.keys
        V = np.maximum(x.square + y.square + 2 * s * x.mean * y.mean, 0.0)
        return replace(self, frame=frame, A=self._best(V, s))

    def plan_moments(self, a: Any, b: Any, S_x: Any, S_y: Any, C: Any) -> DenseExponential:
        """Return the planned map for pairs with these moments, such as the pairs of a head weighted by its attention.

        Parameters
        ----------
        a, b, S_x, S_y, C : arrays
            Means and covariances over pairs of queries and keys, as in `Frame.of_moments`.

        Returns
        -------
        DenseExponential
            The map with the frame of the moments and the constants of smallest variance; a frame or constants that were
            given are kept.
        """
        full = Frame.of_moments(a, b, S_x, S_y, C)
        d, frame = full.d, self.frame
        s = np.ones(d) if self.s is None else np.array(self.s)
        if frame is None:
            frame = self._frame_of_moments(full, *(np.asarray(S, np.float64) for S in (S_x, S_y, C)))
        x = full.query_center - frame.query_center - frame.origin
        y = full.key_center - frame.key_center - frame.origin
        T, inverse = frame.matrix, frame.inverse
        V_x = np.einsum("ji,jk,ki->i", T, S_x + np.outer(x, x), T)
        V_y = np.einsum("ij,jk,ik->i", inverse, S_y + np.outer(y, y), inverse)
        cross = np.einsum("ji,jk,ik->i", T, C + np.outer(x, y), inverse)
        return replace(self, frame=frame, A=self.A or self._best(np.maximum(V_x + V_y + 2 * s * cross, 0.0), s))

    def _frame_of_moments(self, full: Frame, S_x: np.ndarray, S_y: np.ndarray, C: np.ndarray) -> Frame:
        """The frame of moments, without the parts that were declined."""
        if self.center and self.balance:
            return full
        a, b = full.query_center, full.key_center
        if self.center:
            return Frame(a, b, np.eye(full.d))
        zero = np.zeros(full.d)
        if not self.balance:
            return Frame(zero, zero, np.eye(full.d))
        return Frame.of_moments(zero, zero, S_x + np.outer(a, a), S_y + np.outer(b, b), C + np.outer(a, b))

    @staticmethod
    def _best(V: np.ndarray, s: np.ndarray) -> tuple[complex, ...]:
        """The constants of smallest variance for the second moments of x' + s y'."""
        return tuple(_best_constant(float(v), int(sign)) for v, sign in zip(V, s, strict=True))

    def layout(self, projection: Projection) -> Layout:
        nodes, origin = 2 if projection.reflected else 1, int(projection.has_origin)
        real, plain = self._real, not self._complex
        symmetric = plain and self._same_for_both and not projection.signed
        if real:
            return Layout(nodes, origin, symmetric, not projection.signed)
        return Layout(2 * nodes, 2 * origin - origin * plain, symmetric, False)

    @property
    def _complex(self) -> bool:
        """Whether a constant has an imaginary part."""
        return self.A is not None and bool(np.iscomplexobj(np.array(self.A)))

    @property
    def _real(self) -> bool:
        """Whether the features are real exponentials."""
        return not self._complex and (self.s is None or -1 not in self.s)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        assert self.A is not None  # planned
        for name, value in (("A", self.A), ("s", self.s)):
            if value is not None and len(value) != draws.d:
                raise ValueError(f"DenseExponential: {name} has {len(value)} entries, the data has {draws.d} columns.")
        operator = draws.operator()
        s = np.ones(draws.d) if self.s is None else np.array(self.s)
        nodes = Nodes(operator, reflect=operator.reflected)
        return DenseFeatures(nodes, np.array(self.A), s, self._planned_frame(draws.d), kernel, same=self._same_for_both)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error with independent rows, and of positive features also with orthogonal ones."""
        A, s = np.array(self.A), np.ones(case.d) if self.s is None else np.array(self.s)
        positive = not np.iscomplexobj(A) and (A <= 0).all() and (s == 1).all()
        if case.projection.coupling != "orthogonal" or not positive:
            case.require_independent(self)
        elif case.m > 1:
            case.require_time(self)
        inside = self._case_inside(case)
        X, Y = inside.X[:, None, :], inside.Y[None]
        error = theory.dense_exponential_log_relative_mse(X, Y, A, s, case.m, d=case.dim, coupling=case.coupling)
        return case.absolute(error)


class DenseFeatures(Features):
    """Exponentials of a quadratic form of each row of W, in a frame."""

    def __init__(
        self, nodes: Nodes, A: np.ndarray, s: np.ndarray, frame: Frame, kernel: Kernel | None, *, same: bool
    ) -> None:
        self.nodes, self.frame, self.kernel, self.s = nodes, frame, kernel, s
        self.B = np.sqrt((s * (1 - 4 * A)).astype(np.complex128))
        squares, log_D = nodes.to_dense() ** 2, np.log((1 - 4 * A).astype(np.complex128)) / 4
        self.constant = squares @ A.real + log_D.real.sum() + 0.5 * np.log(nodes.weights)
        self.phase = squares @ A.imag + log_D.imag.sum()
        plain = not A.imag.any()
        self.real = plain and not self.B.imag.any()
        self.skip_sine = int(nodes.origin and plain)
        self.width = len(nodes) if self.real else 2 * len(nodes) - self.skip_sine
        self.symmetric = plain and same and not nodes.signed
        self.positive = self.real and not nodes.signed

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """One logarithm per node; cosines and sines of the phase as mantissa where there is one."""
        xp, Z = array_namespace(X), self.frame.inside(X, key=key)
        B = self.s * self.B if key else self.B
        u = self.nodes.project(Z * like(B.real, Z))
        norms = xp.sum(Z * Z * like(-self.s / 2, Z), axis=-1, keepdims=True)
        logarithm = u + like(self.constant, u) + (norms + side_factor(self.frame, X, self.kernel, key=key))
        if self.real:
            signs = key and self.nodes.negative_origin
            return self.nodes.signed_last(xp.ones_like(u)) if signs else None, logarithm
        phase = self.nodes.project(Z * like(B.imag, Z)) + like(self.phase, u)
        return circle(self.nodes, phase, logarithm, key=key, skip_sine=self.skip_sine)

    def quadratic(self) -> Quadratic | None:
        """Rows, constants and signs of real features, in the coordinates of the frame."""
        if not self.real:
            return None
        side = QuadraticSide(self.nodes.to_dense() * self.B.real, self.constant, -0.5)
        return framed_quadratic(Quadratic(side, side, self.nodes.signs), self.frame, self.kernel)


def _best_constant(V: float, s: int) -> float:
    """The real A of least variance in one dimension."""
    return float(theory.optimal_A(V, 1)) if s == 1 else theory.optimal_gerf(V, -1, 1)[1].real


def _constants(A: Any) -> tuple[complex, ...]:
    try:
        array = np.asarray(A, dtype=np.complex128)
    except (TypeError, ValueError):
        raise TypeError(
            f"DenseExponential: A must be a sequence of numbers, one for each column, got {shown(A)}."
        ) from None
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or not (array.real < 0.125).all():
        raise ValueError("DenseExponential: A must be finite numbers with real parts below 1/8, one for each column.")
    values: tuple[complex, ...] = as_tuple(array if array.imag.any() else array.real)
    return values


def _signs(s: Any) -> tuple[int, ...]:
    array = np.asarray(s)
    if array.ndim != 1 or array.dtype.kind not in "if" or not np.isin(array, (1, -1)).all() or not array.size:
        raise ValueError(f"DenseExponential: s must be a sequence of 1 and -1, one for each column, got {shown(s)}.")
    return tuple(int(value) for value in array)
