"""Hyperparameters of Gaussian processes: which are optimised, and the search for the best lengthscales."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize

from .. import catalogue
from .._progress import progress
from .._validation import check_count, check_flag, check_positive, shown
from ..approximation import Approximation, FeatureMap
from ..kernels import Kernel
from ..linalg.engine import blas_for
from ..maps import Landmarks
from ._changed_rows import in_coordinates
from ._chooser import is_auto
from ._coordinates import Coordinates
from ._estimator import NO_TARGETS, Compactable, FeatureEstimator
from ._feature_parameters import FeatureParameters, look_up
from ._linear.evidence import Evidence, downhill
from ._row_source import RowSource

_AUTO_ORDER = 1024
"""Order of dense algebra where the width is chosen: below that of threaded factorisations, whose bits depend on threads."""
_LENGTH_RANGE = np.log(1e3)  # largest distance of a lengthscale from its initial value, in logarithms
_RESTART_RANGE = np.log(10.0)  # largest distance of additional starting points, in logarithms
_SPREAD_ROWS, _WILD = 8192, 4.0
"""Rows on which the spread of columns is measured, and the ratio of deviation and spread above which a column has wild
numbers: a lognormal column of unit logarithmic deviation has 2."""
_STEP = 1e-5  # step of central differences in the logarithm: the cube root of the rounding error of float64


class GaussianEstimator(Compactable, FeatureEstimator):
    """Base class of Gaussian processes; a subclass names the hyperparameters that it can optimise.

    Rows are converted to float64: the marginal likelihood depends on eigenvalues below the rounding error of float32.
    """

    _dtypes: ClassVar[tuple[Any, ...]] = (np.float64,)
    _reads_cells: ClassVar[bool] = True
    known: ClassVar[tuple[str, ...]]
    amplitude: Any
    optimize: Any
    ard: Any
    standardize: Any
    n_restarts: Any
    optimize_rows: Any
    coordinates_: Coordinates | None = None

    def _rows(self, X: Any, y: Any = NO_TARGETS, sample_weight: Any = None, *, reset: bool = False) -> RowSource:
        """Return checked rows, in the coordinates of the fit unless a new one starts."""
        rows = super()._rows(X, y, sample_weight, reset=reset)
        if reset:
            return rows
        predicts = isinstance(y, str) and y == NO_TARGETS
        return in_coordinates(self.coordinates_, rows if predicts else self._observations(rows))

    def _observations(self, rows: RowSource) -> RowSource:
        """Rows that count as observations: all."""
        return rows

    def _parameters(self) -> FeatureParameters:
        """Return the parameters of the features; "auto" is the Gaussian kernel where no lengthscale is searched for."""
        parameters = super()._parameters()
        kernel = "gaussian" if is_auto(self.kernel) else self.kernel
        return parameters._replace(kernel=kernel)

    def _standardizes(self) -> bool:
        """Whether columns are standardised: "auto" does it where the lengthscales of a named kernel are optimised."""
        return self._bandwidth_is_free() if is_auto(self.standardize) else bool(self.standardize)

    def _column_coordinates(self, rows: RowSource) -> Coordinates | None:
        """Standardised columns, where they are asked for; with "auto", wild numbers do not decide on the unit of a column.

        A column whose standard deviation is far above the spread of its middle half is measured in that spread.  It is not
        clipped: a wild row is then far from all others, and changes nothing.
        """
        if not self._standardizes():
            return None
        standard = Coordinates.standard(rows)
        if standard.center is None or standard.scale is None or not is_auto(self.standardize):
            return standard
        sample = rows.sample(_SPREAD_ROWS, np.random.default_rng(0))
        robust = Coordinates.robust(sample, np.inf)
        assert robust.center is not None and robust.scale is not None
        tied = np.mean(sample == robust.center, axis=0) > 0.25  # mostly zeros: the middle half says nothing of the rest
        wild = (robust.scale > _WILD * standard.scale) & ~tied
        return Coordinates(np.where(wild, robust.center, standard.center), np.where(wild, robust.scale, standard.scale))

    def _bandwidth_is_free(self) -> bool:
        """Whether the kernel is a name, or open, and its lengthscales are optimised from where we start them."""
        if "lengthscale" not in self._free() or self.gamma is not None or not isinstance(self.kernel, str):
            return False
        unit = self._named()
        return unit.shift_invariant and unit.has_bandwidth

    def _named(self) -> Kernel:
        """Return the kernel of a name."""
        kernel: Kernel = look_up(type(self).__name__, catalogue.kernel, self._parameters().kernel)
        return kernel

    def _searches(self) -> bool:
        """Whether kernel and lengthscales are chosen by the marginal likelihood of the exact kernel on some rows.

        They are not where other features are given, whose own marginal likelihood counts.
        """
        return self._bandwidth_is_free() and (
            isinstance(self.map, Landmarks) or (isinstance(self.map, str) and self.map in ("auto", "landmarks"))
        )

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        """Threads for features by ``n_jobs``, and for dense algebra by its order alone."""
        owner = type(self).__name__
        order = _AUTO_ORDER if is_auto(self.n_components) else check_count(owner, "n_components", self.n_components)
        with self._threads(), blas_for(order):
            yield

    def _free(self) -> frozenset[str]:
        return free_names(type(self).__name__, self.optimize, self.known)

    def _n_free_scales(self, phi: FeatureMap, d: int) -> int:
        """Number of lengthscales that are optimised."""
        if "lengthscale" not in self._free():
            return 0
        return n_free_scales(type(self).__name__, phi.spec, self.optimize, self.ard is True, d)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        self._free()
        check_positive(owner, "amplitude", self.amplitude)
        for name in ("ard", "standardize"):
            if not is_auto(getattr(self, name)):
                check_flag(owner, name, getattr(self, name))
        check_count(owner, "n_restarts", self.n_restarts, 0)
        check_count(owner, "optimize_rows", self.optimize_rows, 2)


def free_names(owner: str, optimize: Any, known: Sequence[str]) -> frozenset[str]:
    """The names in ``optimize``: True for all, False for none, a name, or several.

    Examples
    --------
    >>> sorted(free_names("example", True, ("lengthscale", "noise")))
    ['lengthscale', 'noise']
    >>> free_names("example", "noise", ("lengthscale", "noise"))
    frozenset({'noise'})
    """
    if isinstance(optimize, bool):
        return frozenset(known if optimize else ())
    chosen = (optimize,) if isinstance(optimize, str) else optimize
    if not isinstance(chosen, tuple | list | set | frozenset) or not set(chosen) <= set(known):
        listed = ", ".join(repr(name) for name in known)
        raise ValueError(f"{owner}: optimize must be True, False, or some of {listed}, got {shown(optimize)}.")
    return frozenset(chosen)


def n_free_scales(owner: str, spec: Approximation, optimize: Any, ard: bool, d: int) -> int:
    """Number of lengthscales that are optimised: none, one, or one for each of d columns.

    ``optimize=True`` means all that the kernel has; a lengthscale requested by name must exist.
    """
    if spec.kernel is None or not spec.kernel.has_bandwidth:
        kernel = "a map without a kernel" if spec.kernel is None else repr(spec.kernel)
        if ard:
            raise ValueError(
                f"{owner}: ard=True needs a kernel with a lengthscale for each column, and {kernel} has none; pass "
                f"ard=False, or a kernel such as kernels.Gaussian()."
            )
        if optimize is True:
            return 0
        raise ValueError(
            f"{owner}: optimize={optimize!r} asks for a lengthscale, and {kernel} has none; leave it out, or use a kernel "
            f"with one, such as kernels.Gaussian()."
        )
    if not ard and not isinstance(spec.kernel.bandwidth, tuple):
        return 1
    if not spec.kernel.shift_invariant:
        raise ValueError(
            f"{owner}: ard=True needs a kernel with a lengthscale for each column, and {spec.kernel!r} has one scale; pass "
            f"ard=False, or a kernel such as kernels.Gaussian()."
        )
    return d


def lengthscales(kernel: Any) -> np.ndarray:
    """Bandwidths, (1,) or (d,)."""
    return np.atleast_1d(np.asarray(kernel.bandwidth, dtype=np.float64))


def stretched(phi: FeatureMap, values: np.ndarray) -> FeatureMap:
    r"""Return the draw with other lengthscales: :math:`\phi(x/\ell)` with W and all constants of the map held.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> phi = Approximation(kernels.Gaussian(), n_projections=4).draw(2, rng=0)
    >>> x = np.ones((1, 2))
    >>> bool(np.allclose(stretched(phi, np.array([2.0])).queries(2 * x), phi.queries(x)))
    True
    """
    kernel: Any = phi.spec.kernel
    bandwidth = float(values[0]) if len(values) == 1 else tuple(np.asarray(values).tolist())
    return phi.with_kernel(kernel.with_bandwidth(bandwidth))


def pull_back(phi: FeatureMap, X: np.ndarray, Phi: np.ndarray, G: np.ndarray, n_scales: int) -> np.ndarray:
    """Gradient in the logarithms of the lengthscales, from the gradient G (n, D) in the features Phi (n, D) of X.

    Trigonometric features and landmarks have it in closed form; other maps have central differences of their features,
    with two evaluations per lengthscale.
    """
    if not n_scales:
        return np.empty(0)
    each = phi.features.stretch(phi.spec.at_unit_scale(X), Phi, G)
    if each is None:
        return _by_differences(phi, X, G, n_scales)
    return each if n_scales > 1 else each.sum(keepdims=True)


def _by_differences(phi: FeatureMap, X: np.ndarray, G: np.ndarray, n_scales: int) -> np.ndarray:
    start = np.broadcast_to(lengthscales(phi.spec.kernel), (n_scales,))
    gradient = np.empty(n_scales)
    for j in range(n_scales):
        step = np.zeros(n_scales)
        step[j] = _STEP
        up, down = (stretched(phi, start * np.exp(sign * step)).queries(X) for sign in (1, -1))
        gradient[j] = np.vdot(G, up - down) / (2 * _STEP)
    return gradient


class Others(NamedTuple):
    """The hyperparameters beside the lengthscales, in logarithms."""

    start: Callable[[np.ndarray], np.ndarray]  # from features to where to start
    bounds: np.ndarray  # (k, 2): lowest and highest; a pair of equal numbers holds one


class Optimum(NamedTuple):
    """Lengthscales and logarithms of the others at the highest value found, and that value."""

    lengthscales: np.ndarray
    logs: np.ndarray
    value: float


class Objective:
    """A log marginal likelihood of rows as a function of logarithms: lengthscales first, then the others.

    Parameters
    ----------
    phi : FeatureMap
        The draw that all lengthscales share.
    X : float64 array (n, d)
    evidence : callable
        From features and logarithms of the others to `Evidence`.
    n_scales : int
        How many lengthscales: none, one, or one for each column.
    """

    def __init__(
        self, phi: FeatureMap, X: np.ndarray, evidence: Callable[[np.ndarray, np.ndarray], Evidence], n_scales: int
    ) -> None:
        self.phi, self.X, self.evidence, self.n_scales = phi, X, evidence, n_scales

    def features(self, log_scales: np.ndarray) -> tuple[FeatureMap, np.ndarray]:
        """The stretched map, and the features of the rows."""
        phi = stretched(self.phi, np.exp(log_scales)) if self.n_scales else self.phi
        return phi, np.asarray(phi.queries(self.X))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        phi, Phi = self.features(theta[: self.n_scales])
        at = self.evidence(Phi, theta[self.n_scales :])
        return at.value, np.concatenate([pull_back(phi, self.X, Phi, at.features, self.n_scales), at.logs])


def maximise(
    objective: Objective, others: Others, n_restarts: int, rng: np.random.Generator, *, verbose: Any
) -> Optimum:
    """The best of L-BFGS-B from the lengthscales of the kernel and from ``n_restarts`` places drawn about them."""
    k = objective.n_scales
    first = np.log(np.broadcast_to(lengthscales(objective.phi.spec.kernel), (k,)))
    moves = [np.zeros(k), *rng.uniform(-_RESTART_RANGE, _RESTART_RANGE, (n_restarts, k))]
    bounds = np.concatenate([np.stack([first - _LENGTH_RANGE, first + _LENGTH_RANGE], axis=1), others.bounds])
    found = []
    for move in progress(moves, label="marginal likelihood", shown=bool(verbose)):
        logs = others.start(objective.features(first + move)[1])
        start = np.clip(np.concatenate([first + move, logs]), bounds[:, 0], bounds[:, 1])
        found.append(minimize(downhill(objective), start, jac=True, method="L-BFGS-B", bounds=bounds))
    best = min(found, key=lambda result: float(result.fun))
    return Optimum(np.exp(best.x[:k]), best.x[k:], -float(best.fun))
