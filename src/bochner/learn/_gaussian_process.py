"""Gaussian process regression in the space of the features."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import check_count, check_flag, check_positive
from ..approximation import FeatureMap
from ._estimator import all_or_nothing
from ._feature_parameters import as_generator
from ._hyperparameters import GaussianEstimator, best_lengthscales, equations_of_rows, regression_objective
from ._kernel_ridge import as_columns
from ._linear.evidence import (
    Hyperparameters,
    SpectralEvidence,
    function_at,
    functions_at,
    means_and_spreads,
    posterior,
)
from ._linear.moments import Moments
from ._linear.ridge import collect_moments
from ._linear.spectrum import NormalEquations, Scaling
from ._row_source import RowSource


class GaussianProcess(RegressorMixin, GaussianEstimator):
    r"""Gaussian process regression with random features, in time linear in the number of rows.

    Use it for predictions with standard deviations, and to choose lengthscales, noise and amplitude by the marginal
    likelihood in place of cross-validation.

    Parameters
    ----------
    kernel : Kernel or str, default "gaussian"
        A kernel of amplitude one, or its name.
    gamma : "scale", "median", float or None
        Initial bandwidth of a kernel of unit scale, as in `RandomFeatures`; None leaves the kernel unchanged.
    map, projection : Map, Projection, str or None
        Map and projection; None for the default of the kernel and the map.  The map must be symmetric.
    n_components : int, default 256
        Width D of the features.
    noise : float, default 0.1
        Variance :math:`\sigma^2` of the noise; the initial value if it is optimised.
    amplitude : float, default 1.0
        Variance a of the function where k(x, x) = 1; the initial value if it is optimised.
    optimize : bool, str or sequence of str, default True
        Hyperparameters that are chosen by maximising the marginal likelihood: some of ``"lengthscale"``, ``"noise"``,
        ``"amplitude"``.  True means all that the kernel has, False none.
    ard : bool, default False
        Whether each column has its own lengthscale (automatic relevance determination).
    n_restarts : int, default 0
        Number of additional starting points of the search over lengthscales, up to a factor of ten away.
    optimize_rows : int, default 5000
        Largest number of rows for the search over lengthscales; they are sampled if there are more.
    normalize_y : bool, default False
        Whether targets are scaled to mean 0 and variance 1; noise and amplitude are then in these units.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Number of threads; None means all.  Results do not depend on it.
    verbose : int, default 0
        Whether long loops show a progress bar.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its lengthscales.
    noise_, amplitude_ : float
        Variances of the noise and of the function.
    features_ : FeatureMap
        The drawn features.
    posterior_ : Posterior
        Mean and covariance of the weights.
    statistics_ : RegressionStatistics
        Sums over all rows seen.
    scaling_ : Scaling
        Shift and scale that `normalize_y` applies to targets.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood of the fit.
    n_features_in_ : int
        Number of columns of the data.

    See Also
    --------
    KernelRidge : Regression without uncertainty, faster to tune on many rows.

    Notes
    -----
    The function is :math:`f(x) = \phi(x)\cdot w` with :math:`w \sim N(0, aI)`, so that its covariance is
    :math:`a\,\phi(x)\cdot\phi(y) \approx a\,k(x, y)`, and :math:`y = f(x) + \varepsilon` with
    :math:`\varepsilon \sim N(0, \sigma^2)`.  With :math:`B = \Phi^T\Phi + (\sigma^2/a)I`,

    .. math:: w \mid y \sim N(B^{-1}\Phi^Ty,\; \sigma^2B^{-1}),

    which is exactly the Gaussian process of the kernel matrix :math:`a\Phi\Phi^T`, in O(n D^2 + D^3) time and O(D^2)
    memory.  The posterior and the log marginal likelihood are functions of the sums :math:`\Phi^T\Phi`,
    :math:`\Phi^Ty`, :math:`y^Ty` and n, so rows can be added in batches (`partial_fit`) and by many machines
    (`bochner.distributed`).

    Noise and amplitude are chosen by maximising the marginal likelihood on all rows, from one eigendecomposition of
    these sums.  Lengthscales are chosen by L-BFGS-B in their logarithms with W held fixed, on at most ``optimize_rows``
    rows, with gradients through the features (analytic for trigonometric features, finite differences for other maps).

    With fewer features than the data have degrees of freedom, the posterior is overconfident far from the data
    (variance starvation); increase ``n_components`` until the standard deviations no longer change.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import GaussianProcess
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (400, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    >>> gp = GaussianProcess(random_state=0).fit(X, y)
    >>> bool(0.007 < gp.noise_ < 0.013)
    True
    >>> mean, std = gp.predict([[0.5], [30.0]], return_std=True)
    >>> bool(std[1] > 10 * std[0])
    True
    """

    _target_options: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}
    known = ("lengthscale", "noise", "amplitude")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        gamma: Any = None,
        map: Any = None,
        projection: Any = None,
        n_components: int = 256,
        noise: float = 0.1,
        amplitude: float = 1.0,
        optimize: Any = True,
        ard: bool = False,
        n_restarts: int = 0,
        optimize_rows: int = 5000,
        normalize_y: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.projection = projection
        self.n_components = n_components
        self.noise = noise
        self.amplitude = amplitude
        self.optimize = optimize
        self.ard = ard
        self.n_restarts = n_restarts
        self.optimize_rows = optimize_rows
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> GaussianProcess:
        """Fit the model.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : array (n,) or (n, t)
            Targets.

        Returns
        -------
        self
        """
        return self._start(self._rows(X, y, reset=True))

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> GaussianProcess:
        """Add a batch of rows to the model.

        The first call draws the features and chooses the lengthscales; later calls keep both.  Noise and amplitude, if
        they are optimised, are those of all rows seen, so batches give the same result as a single fit.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : array (n,) or (n, t)
            Targets.

        Returns
        -------
        self
        """
        first = not hasattr(self, "statistics_")
        rows = self._rows(X, y, reset=first)
        if first:
            return self._start(rows)
        if rows.n_targets != self.statistics_.n_targets:
            raise ValueError(
                f"GaussianProcess: expected {self.statistics_.n_targets} targets as in the first call of partial_fit, got "
                f"{rows.n_targets}."
            )
        with self._computing():
            return self._finish(self.features_, self.statistics_ + self._moments(self.features_, rows))

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, include_noise: bool = False
    ) -> Any:
        """Return the posterior mean at rows X, and optionally the standard deviation or covariance.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        return_std, return_cov : bool
            Whether to return the standard deviations or the covariance as well.
        include_noise : bool
            Whether these include the noise of new observations.

        Returns
        -------
        mean : array (n,) or (n, t)
            Posterior mean.
        std or cov : array (n,), (n, t), (n, n) or (n, n, t)
            Standard deviations or covariance, if requested.
        """
        if return_std and return_cov:
            raise RuntimeError("GaussianProcess: at most one of return_std or return_cov can be requested.")
        check_flag("GaussianProcess.predict", "include_noise", include_noise)
        rows, t = self._rows(X), len(self.scaling_.shift)
        noise, width = self.noise_ if include_noise else 0.0, self.features_.n_features_out
        with self._computing():
            if return_cov:
                return self._with_covariance(rows, noise)
            if not return_std:
                return rows.map(self._predictor(), () if self._single_target else (t,), np.float64, width=width)
            work = partial(
                means_and_spreads, phi=self.features_, fitted=self.posterior_, scaling=self.scaling_, noise=noise
            )
            both = rows.map(work, (2 * t,), np.float64, width=width)
        return (both[:, 0], both[:, 1]) if self._single_target else (both[:, :t], both[:, t:])

    def _predictor(self) -> Callable[[np.ndarray], np.ndarray]:
        weights = self.posterior_.mean[:, :, None]
        return partial(
            function_at, phi=self.features_, weights=weights, scaling=self.scaling_, single=self._single_target
        )

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Draw functions from the posterior, without noise, and evaluate them at rows X.

        The same ``random_state`` draws the same weights, and therefore the same functions at any rows.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        n_samples : int
            Number of functions.
        random_state : int, RandomState, Generator or None
            Source of randomness.

        Returns
        -------
        array (n, n_samples) or (n, t, n_samples)
        """
        rows = self._rows(X)
        n = check_count("GaussianProcess.sample_y", "n_samples", n_samples)
        with self._computing():
            W = self.posterior_.sample(n, as_generator(random_state))
            work = partial(
                functions_at, phi=self.features_, weights=W, scaling=self.scaling_, single=self._single_target
            )
            tail = (n,) if self._single_target else (W.shape[1], n)
            return rows.map(work, tail, np.float64, width=self.features_.n_features_out)

    def log_marginal_likelihood(
        self, theta: Any = None, X: Any = None, y: Any = None, *, eval_gradient: bool = False
    ) -> Any:
        """Return the log marginal likelihood of the targets (in the units of ``normalize_y``), and its gradient.

        Parameters
        ----------
        theta : array (2,), (3,) or (2 + d,), optional
            Logarithms of noise, amplitude and, if given, the lengthscale or lengthscales; None means the fitted ones.
        X, y : arrays, optional
            Rows to evaluate on.  By default the value is that of all rows seen, at the lengthscales of the fit.
        eval_gradient : bool
            Whether to return the gradient in ``theta`` as well.

        Returns
        -------
        value : float
            Log marginal likelihood.
        gradient : array
            Its gradient, if requested.
        """
        check_is_fitted(self)
        theta = self._theta(theta, X)
        with self._computing():
            if X is None:
                equations = NormalEquations.of(self.statistics_, about_mean=False, scaling=self.scaling_)
                evidence, (noise, amplitude) = SpectralEvidence(equations.spectrum()), np.exp(theta)
                found = evidence.value(noise, amplitude), evidence.gradient(noise, amplitude)
            else:
                found = self._value_on(self._rows(X, y), theta)
        return found if eval_gradient else found[0]

    def _theta(self, theta: Any, X: Any) -> np.ndarray:
        """Checked logarithms."""
        if theta is None:
            return np.log([self.noise_, self.amplitude_])
        given = np.asarray(theta, dtype=np.float64)
        allowed = (2,) if X is None else (2, 3, 2 + self.n_features_in_)
        if given.shape not in [(k,) for k in allowed]:
            hint = "; lengthscales need X and y, since they change the features" if X is None else ""
            raise ValueError(
                f"GaussianProcess.log_marginal_likelihood: theta must have {' or '.join(map(str, allowed))} entries, "
                f"logarithms of noise, amplitude and lengthscales, got shape {given.shape}{hint}."
            )
        return given

    def _value_on(self, rows: RowSource, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """On other rows: the objective has lengthscales first."""
        n_scales, (X, y, _) = len(theta) - 2, rows.gathered()
        objective = regression_objective(self.features_, X, self.scaling_.apply(as_columns(y, None)[0]), n_scales)
        value, gradient = objective(np.roll(theta, n_scales))
        return value, np.roll(gradient, -n_scales)

    def _start(self, rows: RowSource) -> GaussianProcess:
        """Draw features, choose their lengthscales, and fit."""
        self._check_parameters()
        rng = as_generator(self.random_state)
        with self._computing():
            phi = self._tuned(self._drawn(rows, rng), rows, rng)
            self._single_target = not rows.target_shape
            few = self._of_few_rows(phi, rows)
            return self._finish(phi, self._moments(phi, rows), few)

    def _moments(self, phi: FeatureMap, rows: RowSource) -> Moments:
        columns = rows.relabelled(as_columns, rows.n_targets, weighted=False)
        return collect_moments(phi, columns, verbose=self.verbose)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("GaussianProcess", "noise", self.noise)
        check_flag("GaussianProcess", "normalize_y", self.normalize_y)

    def _given(self) -> Hyperparameters:
        free = self._free()
        return Hyperparameters(
            None if "noise" in free else float(self.noise), None if "amplitude" in free else float(self.amplitude)
        )

    def _tuned(self, phi: FeatureMap, rows: RowSource, rng: np.random.Generator) -> FeatureMap:
        """The same draw, with the best lengthscales on some of the rows, if they are free."""
        n_scales = self._n_free_scales(phi, rows.shape[1])
        if not n_scales:
            return phi
        X, y = rows.sample_with_targets(self.optimize_rows, rng)
        Y, given = self._scaled(as_columns(y, None)[0].astype(np.float64)), self._given()
        X = X.astype(np.float64, copy=False)
        return best_lengthscales(phi, X, Y, given, n_scales, self.n_restarts, rng, verbose=self.verbose)

    def _scaled(self, Y: np.ndarray) -> np.ndarray:
        """Targets (n, t) by their own mean and standard deviation, if they are normalised."""
        return Scaling.of(Y.mean(axis=0), Y.var(axis=0), normalize=self.normalize_y).apply(Y)

    def _of_few_rows(self, phi: FeatureMap, rows: RowSource) -> Hyperparameters:
        """Noise and amplitude of rows fewer than features, for which their decomposition is the cheaper one."""
        given = self._given()
        if None not in given or not rows.in_memory or rows.shape[0] >= phi.n_features_out:
            return given
        X, y, _ = rows.gathered()
        equations = equations_of_rows(phi.queries(X), self._scaled(as_columns(y, None)[0].astype(np.float64)))
        return Hyperparameters(*SpectralEvidence(equations.spectrum()).best(given))

    def _finish(self, phi: FeatureMap, moments: Moments, given: Hyperparameters | None = None) -> GaussianProcess:
        """The posterior of the moments, with the best noise and amplitude where they are not given."""
        scaling = Scaling.of(moments.target_mean, moments.target_scatter / moments.weight, normalize=self.normalize_y)
        equations = NormalEquations.of(moments, about_mean=False, scaling=scaling)
        noise, amplitude = self._given() if given is None else given
        if noise is None or amplitude is None:
            noise, amplitude = SpectralEvidence(equations.spectrum()).best(Hyperparameters(noise, amplitude))
        fitted = posterior(equations, noise, amplitude)
        if fitted.lost and "noise" not in self._free():
            warnings.warn(
                f"GaussianProcess: noise={noise} is below the rounding of the features, which leave {fitted.lost} "
                f"directions undetermined; nothing is fitted there. Raise noise, or lower n_components.",
                LinAlgWarning,
                stacklevel=4,
            )
        self.features_, self.statistics_, self.scaling_, self.posterior_ = phi, moments, scaling, fitted
        self.noise_, self.amplitude_ = noise, amplitude
        self.log_marginal_likelihood_value_ = fitted.log_marginal_likelihood
        return self

    def _with_covariance(self, rows: RowSource, noise: float) -> tuple[np.ndarray, np.ndarray]:
        if not rows.in_memory:
            raise ValueError(
                "GaussianProcess: return_cov=True needs all rows in one place; pass an array of some rows, or "
                "return_std=True."
            )
        Phi, (shift, scale) = self.features_.queries(rows.gathered().X), self.scaling_
        mean = shift + scale * (Phi @ self.posterior_.mean)
        covariance = self.posterior_.covariance(Phi)
        covariance[np.diag_indices(len(Phi))] += noise
        spread = covariance[..., None] * scale**2
        return (mean[:, 0], spread[..., 0]) if self._single_target else (mean, spread)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
