"""Gaussian process regression in one to three columns, on a grid of frequencies, in the time of a few passes."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy import fft
from sklearn.base import RegressorMixin

from .. import catalogue
from .._arrays import is_sparse
from .._random import streams
from .._validation import check_flag, check_positive, shown
from ..approximation import Approximation, FeatureMap
from ..kernels import Kernel, resolve_bandwidth
from ..linalg.engine import available_threads
from ..linalg.nonuniform import NonuniformTransform
from ..maps import FourierGrid
from ..maps._boxed import MARGINS
from ._estimator import RowEstimator, all_or_nothing
from ._feature_parameters import as_generator, look_up
from ._gaussian_process import GaussianProcess
from ._linear.toeplitz import ToeplitzEquations
from ._row_source import RowSource

LARGEST = {1: 1 << 18, 2: 1 << 18, 3: 1 << 16}
"""Features at most, by number of columns: a step of conjugate gradients takes some hundredths of a second then."""
_MISSED = 0.27
"""Root mean square of the part of the mean that features leave out, in units of ``tolerance``; maxima are larger: with
0.3, the largest error at a million of ten million rows was 1.01 tolerances."""
_STREAM = 100  # rows of a stream, in units of the first part, that the number of features is chosen for
_SEARCH_ROWS = 1000  # rows on which hyperparameters are chosen, at most
_SOLVED = 0.3
"""Error of conjugate gradients for the mean, in units of ``tolerance``.  It is measured at the rows, and larger between
clusters of them: with 1.0, up to nine tolerances on 2000 rows in 12 clusters."""
_SPREAD_SOLVED = 0.005
"""Error of conjugate gradients for functions that standard deviations are estimated from, relative to their change from
the prior.  It is measured at the rows, and functions start as those of the prior: with 0.02, standard deviations far from
2000 rows in 12 clusters were up to 8 % too large."""
N_FUNCTIONS, _AT_A_TIME = 64, 4
"""Functions of the posterior that standard deviations are estimated from, and how many of them at a time."""
_FINE = {1: 8, 2: 8, 3: 4}
"""Cells of the histogram of the rows for each frequency along an axis: rows move by a sixteenth of the shortest wave."""


class FourierProcess(RegressorMixin, RowEstimator):
    r"""Gaussian process regression for one to three columns and up to hundreds of millions of rows.

    Use it for maps, time series and volumes: after one pass over the rows, which spreads them to a grid, neither time nor
    memory depends on their number.  The prior is that of the kernel up to ``tolerance``; nothing is random in the mean.

    Parameters
    ----------
    kernel : "auto", Kernel or str, default "auto"
        A Gaussian, Matern or Laplacian kernel of amplitude one, or its name.  ``"auto"`` chooses among them by their
        marginal likelihood.
    noise, amplitude : float, default 0.1 and 1.0
        Variance of the noise, and of the function; initial values if they are optimised.
    optimize : bool, default True
        Whether lengthscales, noise and amplitude are chosen by the exact marginal likelihood of at most 1000 rows.
    tolerance : float, default 1e-3
        Target error of the mean, in standard deviations of the prior; it decides the number of features.
    box : pair of sequences of float, optional
        Lowest and highest corner of the region of all rows and predictions; by default that of the rows of the first call.
    fit_intercept : bool, default True
        Whether the mean of the targets is the prior mean of the function; otherwise it is zero.
    random_state : int, RandomState, Generator or None
        Source of randomness, for the sample of rows and for standard deviations.
    n_jobs : int or None
        Number of threads; None means all.  Results do not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its lengthscales.
    noise_, amplitude_ : float
        Variances of the noise and of the function.
    features_ : FeatureMap
        The features, `maps.FourierGrid`, whose ridge regression the mean is.
    box_ : array (2, d)
        Lowest and highest corner of the region of rows and predictions.
    intercept_ : float
        Prior mean.
    coefficients_ : complex array
        Fourier coefficients of the posterior mean.
    n_steps_ : int
        Steps of conjugate gradients.
    weight_ : float
        Number of rows, or their weight.
    n_features_in_ : int
        Number of columns of the data.

    See Also
    --------
    GaussianProcess : For more columns, and with the marginal likelihood of all rows.

    Notes
    -----
    With the weights :math:`w_j` and frequencies of `maps.FourierGrid`, the normal equations are
    :math:`(DTD + \lambda I)b = D r`, where :math:`D = \mathrm{diag}\sqrt w`, :math:`\lambda` is noise over amplitude, and
    :math:`T_{jk} = \sum_n e^{-i(\omega_j-\omega_k)\cdot x_n}` and :math:`r_j = \sum_n y_n e^{-i\omega_j\cdot x_n}` come from
    one non-uniform Fourier transform of the rows.  T is a Toeplitz matrix, so that a step of conjugate gradients is a pair
    of fast Fourier transforms: :math:`O(n + M\log M)` in all for M frequencies (greengard2022).  These sums add up over
    rows, and `partial_fit` continues them.

    Standard deviations are estimated from 64 functions of the posterior, with a relative error of about 9 %; they are
    drawn on first request, which takes several times as long as the mean.  Their noise is drawn on a histogram of the
    rows, eight cells (four in three columns) for each frequency.

    Beyond ``box`` the features repeat themselves, so predictions there are refused.  The number of features is such that
    those left out have, in the posterior mean of a function of the prior, a root mean square of 0.27 ``tolerance``; in a
    stream, for 100 times the rows of the first call.

    References
    ----------
    greengard2022.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Matern
    >>> from bochner.learn import FourierProcess
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (20_000, 2))
    >>> y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + 0.3 * rng.standard_normal(20_000)
    >>> gp = FourierProcess(Matern(1.5, 0.3), noise=0.09, optimize=False).fit(X, y)
    >>> bool(np.abs(gp.predict([[0.5, 0.5]]) - np.sin(4.5) * np.cos(3.5)).max() < 0.05)
    True
    """

    _target_options: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        noise: float = 0.1,
        amplitude: float = 1.0,
        optimize: bool = True,
        tolerance: float = 1e-3,
        box: Any = None,
        fit_intercept: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.amplitude = amplitude
        self.optimize = optimize
        self.tolerance = tolerance
        self.box = box
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FourierProcess:
        """Fit the model.

        Parameters
        ----------
        X : array (n, d)
            Data, d = 1, 2 or 3.
        y : array (n,)
            Targets.
        sample_weight : array (n,), optional
            Weights of the rows: the noise of a row of weight w has the variance of the noise divided by w.

        Returns
        -------
        self
        """
        rows = self._rows(X, y, sample_weight, reset=True)
        with self._threads():
            return self._begin(rows, 1)._add(rows)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> FourierProcess:
        """Add rows; the first call chooses the kernel and the box, and later rows must lie in it.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        first = not hasattr(self, "coefficients_")
        rows = self._rows(X, y, sample_weight, reset=first)
        with self._threads():
            return (self._begin(rows, _STREAM) if first else self)._add(rows)

    def predict(self, X: Any, return_std: bool = False, *, include_noise: bool = False) -> Any:
        """Return the posterior mean at rows X, and optionally the standard deviation.

        Parameters
        ----------
        X : array (n, d)
            Data, inside of the box.
        return_std : bool
            Whether to return the standard deviations as well.
        include_noise : bool
            Whether these include the noise of new observations.

        Returns
        -------
        mean : array (n,)
            Posterior mean.
        std : array (n,)
            Standard deviations, if requested.
        """
        check_flag("FourierProcess.predict", "include_noise", include_noise)
        rows = self._rows(X)
        with self._threads():
            angles = self._angles(rows.gathered().X)
            mean = self.intercept_ + self._transform.values(angles, self.coefficients_[None])[:, 0]
            if not return_std:
                return mean
            variance = np.full(len(mean), self.noise_ if include_noise else 0.0)
            functions = self._functions()
            for i in range(0, N_FUNCTIONS, _AT_A_TIME):
                values = self._transform.values(angles, functions[i : i + _AT_A_TIME])
                variance += np.einsum("nk,nk->n", values, values) / N_FUNCTIONS
        return mean, np.sqrt(variance)

    def _begin(self, rows: RowSource, growth: int) -> FourierProcess:
        """Choose the hyperparameters, the box and the frequencies."""
        for name in ("noise", "amplitude", "tolerance"):
            check_positive("FourierProcess", name, getattr(self, name))
        for name in ("optimize", "fit_intercept"):
            check_flag("FourierProcess", name, getattr(self, name))
        if rows.shape[1] > 3:
            raise ValueError(
                f"FourierProcess: X must have at most 3 columns, got {rows.shape[1]}: the number of frequencies of a grid "
                f"grows exponentially; use GaussianProcess."
            )
        rng = as_generator(self.random_state)
        self._seed = int(rng.integers(2**63))
        self.kernel_, self.noise_, self.amplitude_ = self._hyperparameters(rows, rng)
        low, high = self._corners(rows)
        unit = [tuple(np.asarray(self.kernel_.at_unit_scale(c[None]))[0].tolist()) for c in (low, high)]
        self.box_ = np.stack([low, high])
        ratio, d = self.noise_ / self.amplitude_, rows.shape[1]
        self.features_ = _within_tolerance(
            self.kernel_, FourierGrid(None, *unit), self.tolerance, ratio, growth * rows.count()
        )
        self.weight_, self._target_sum = 0.0, 0.0
        self._density = np.zeros(
            NonuniformTransform(tuple(2 * M for M in self._transform.largest)).shape, np.complex128
        )
        self._cross = np.zeros(self._transform.shape, np.complex128)
        cells = tuple(fft.next_fast_len(_FINE[d] * (2 * M + 1), real=True) for M in self._transform.largest)
        self._histogram = np.zeros(cells)
        return self

    def _add(self, rows: RowSource) -> FourierProcess:
        """Add the sums of these rows, and solve."""
        X, y, weights = rows.gathered()
        angles, transform = self._angles(X), self._transform
        w = np.ones(len(y)) if weights is None else weights
        values = np.column_stack([w, w * y])
        twice = NonuniformTransform(tuple(2 * M for M in transform.largest))
        density, cross = twice.sums(angles, values)
        places = np.ix_(
            *(np.mod(j, s) for j, s in zip(transform.frequencies(), (*twice.shape[:-1], 1 << 30), strict=True))
        )
        self._density = self._density + density
        self._cross = self._cross + cross[places]
        self._histogram = self._histogram + _counted(angles, w, self._histogram.shape)
        self.weight_ += float(w.sum())
        self._target_sum += float(values[:, 1].sum())
        self.intercept_ = self._target_sum / self.weight_ if self.fit_intercept else 0.0
        about = self._cross - self.intercept_ * self._density[places]
        equations = ToeplitzEquations(self._weights, self._density, about[None])
        ratio = self.noise_ / self.amplitude_
        found = equations.solve(ratio, _SOLVED * self.tolerance, accepted=self.tolerance)
        self.coefficients_, self.n_steps_ = (equations.root * found)[0], equations.steps
        self.__dict__.pop("_drawn_functions", None)
        return self

    def _functions(self) -> np.ndarray:
        """Fourier coefficients of functions with the covariance of the posterior and mean zero; kept."""
        if "_drawn_functions" not in self.__dict__:
            rng, axes = streams(self._seed, "functions")[0], tuple(range(1, self._histogram.ndim + 1))
            equations = ToeplitzEquations(self._weights, self._density, self._cross[None])
            ratio, found = self.noise_ / self.amplitude_, []
            cells = self._histogram.shape
            places = np.ix_(*(np.mod(j, N) for j, N in zip(self._transform.frequencies(), cells, strict=True)))
            prior = NonuniformTransform(self._transform.largest).cells
            for _ in range(N_FUNCTIONS // _AT_A_TIME):
                drawn = rng.standard_normal((_AT_A_TIME, *cells)) * np.sqrt(self._histogram)
                sums = fft.rfftn(drawn, axes=axes, workers=available_threads())[(slice(None), *places)]
                white = _white(rng, prior, self._transform, _AT_A_TIME)
                before = white / np.sqrt(ratio)  # of the prior, so that nothing is to be solved far from the rows
                change = equations.solve(
                    ratio, _SPREAD_SOLVED, cross=equations.root * sums - equations.multiply(before)
                )
                found.append(np.sqrt(self.noise_) * equations.root * (before + change))
            self._drawn_functions = np.concatenate(found)
        return self._drawn_functions

    @property
    def _transform(self) -> NonuniformTransform:
        steps = np.abs(self.features_.features.lattice.steps)  # type: ignore[attr-defined]
        return NonuniformTransform(tuple(np.maximum(steps.max(axis=0), 1).tolist()))

    @property
    def _weights(self) -> np.ndarray:
        """Weights of all frequencies in the order of the transform; zero for those without a feature."""
        lattice = self.features_.features.lattice  # type: ignore[attr-defined]
        weights = np.zeros(self._transform.shape)
        for sign in (1, -1):
            steps = sign * lattice.steps
            kept = steps[:, -1] >= 0
            weights[tuple(steps[kept].T)] = lattice.weights[kept]
        return weights

    def _angles(self, X: Any) -> np.ndarray:
        """Angles of rows on the torus of the features, checked to lie in the box."""
        X = X.toarray() if is_sparse(X) else X
        low, high = self.box_
        slack = 1e-9 * (high - low)
        if len(X) and ((X < low - slack).any() or (X > high + slack).any()):
            raise ValueError(
                f"FourierProcess: X must lie in the box from {shown(low.tolist())} to {shown(high.tolist())}; pass "
                f"box=(low, high) with corners of all rows and predictions."
            )
        features: Any = self.features_.features
        unit = np.asarray(self.kernel_.at_unit_scale(X.astype(np.float64, copy=False)))
        return np.asarray((unit - features.centre) * features.lattice.spacing)

    def _corners(self, rows: RowSource) -> tuple[np.ndarray, np.ndarray]:
        if self.box is None:
            X = rows.gathered().X
            X = X.toarray() if is_sparse(X) else X
            return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        try:
            low, high = (np.array(corner, dtype=np.float64) for corner in self.box)
            right = low.shape == high.shape == (rows.shape[1],) and bool(
                (low <= high).all() and np.isfinite(high - low).all()
            )
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(
                f"FourierProcess: box must be the lowest and the highest corner, {rows.shape[1]} finite numbers each, got "
                f"{shown(self.box)}."
            )
        return low, high

    def _hyperparameters(self, rows: RowSource, rng: np.random.Generator) -> tuple[Any, float, float]:
        if self.optimize or (isinstance(self.kernel, str) and self.kernel == "auto"):
            X, y, weights = rows.sample_weighted(_SEARCH_ROWS, rng)
            chosen = GaussianProcess(
                self.kernel,
                noise=self.noise,
                amplitude=self.amplitude,
                optimize=True if self.optimize else "lengthscale",
                standardize=False,
                fit_intercept=self.fit_intercept,
                random_state=rng,
                n_jobs=self.n_jobs,
            ).fit(X, y, weights)
            kernel, noise, amplitude = chosen.kernel_, chosen.noise_, chosen.amplitude_
        else:
            kernel, noise, amplitude = self.kernel, float(self.noise), float(self.amplitude)
            if isinstance(kernel, str):
                kernel = look_up("FourierProcess", catalogue.kernel, kernel)
                kernel = resolve_bandwidth(kernel, kernel.default_rule, rows, rng=rng, owner="FourierProcess")
        if not isinstance(kernel, Kernel) or not FourierGrid().serves(kernel):
            raise ValueError(
                f"FourierProcess: kernel must be a Gaussian, Matern or Laplacian kernel, or its name, got {shown(kernel)}."
            )
        kernel.check_columns(rows.shape[1])
        return kernel, noise, amplitude

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _within_tolerance(kernel: Any, grid: FourierGrid, tolerance: float, ratio: float, n: float) -> FeatureMap:
    """The fewest features that give the mean of n rows within the tolerance, or the most there can be, with a warning.

    A frequency of weight w that is left out has in the mean a part of variance w q/(q + ratio), where q is w times the
    number of rows on the whole torus at their density.
    """
    near = [margin for margin in MARGINS if grid.from_images(kernel, margin) <= tolerance * min(1.0, ratio**0.5)]
    margin, d = float(near[0] if near else MARGINS[-1]), len(grid.low)
    density = n * float(np.prod((grid.extent + margin) / np.maximum(grid.extent, 1.0)))
    m, most = 0, 512
    while True:
        weights = grid.lattice(kernel, most, margin).weights
        missed = 2 * weights * (density * weights / (density * weights + ratio))
        error = np.sqrt(np.cumsum(missed[::-1])[::-1])  # of the features before each of them
        m = 2 * int(np.argmax(error <= _MISSED * tolerance)) + 1
        if 1 < m < most / 2 or most > LARGEST[d]:
            break
        most *= 4
    if not 1 < m <= LARGEST[d]:
        m = LARGEST[d] + 1
        warnings.warn(
            f"FourierProcess: the lengthscales are so short relative to the box that {m} features, the most in {d} "
            f"columns, have an error of about {error[min(m // 2, len(error) - 1)] / _MISSED:.1e} in the mean, "
            f"above tolerance={tolerance:g}; raise tolerance, or model parts of the box.",
            UserWarning,
            stacklevel=5,
        )
    spec = Approximation(kernel, FourierGrid(margin, grid.low, grid.high), n_projections=m)
    return spec.draw(d, rng=0)


def _counted(angles: np.ndarray, weights: np.ndarray, cells: tuple[int, ...]) -> np.ndarray:
    """Weights of the rows in cells of the torus."""
    index = np.zeros(len(angles), np.int64)
    for k, N in enumerate(cells):
        index *= N
        index += np.mod(np.rint(angles[:, k] * (N / (2 * np.pi))).astype(np.int64), N)
    return np.bincount(index, weights, int(np.prod(cells))).reshape(cells)


def _white(rng: np.random.Generator, cells: tuple[int, ...], transform: NonuniformTransform, count: int) -> np.ndarray:
    """Coefficients of independent real features of variance one, with the symmetry of a real function."""
    axes = tuple(range(1, len(cells) + 1))
    grid = fft.rfftn(rng.standard_normal((count, *cells)), axes=axes, norm="ortho")
    places = np.ix_(*(np.mod(j, N) for j, N in zip(transform.frequencies(), cells, strict=True)))
    return np.asarray(grid[(slice(None), *places)])
