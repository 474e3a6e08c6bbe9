"""Gaussian process regression in the space of the features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._validation import check_count, check_flag
from ._estimator import all_or_nothing
from ._feature_parameters import as_generator
from ._gaussian_regression import GaussianRegression
from ._linear.posterior import means, means_and_covariance, means_and_spreads
from ._posterior_functions import PosteriorFunctions
from ._row_source import RowSource


class GaussianProcess(RegressorMixin, GaussianRegression):
    r"""Gaussian process regression with an automatic choice of kernel, in time linear in the number of rows.

    Use it for predictions with standard deviations, and to choose lengthscales, noise and amplitude by the marginal
    likelihood in place of cross-validation.  Up to 3000 rows the process is exact.

    Parameters
    ----------
    kernel : "auto", Kernel or str
        A kernel of amplitude one, or its name.  ``"auto"`` chooses among the Gaussian, the Matern-3/2 and the Laplacian
        kernel by their marginal likelihood.
    gamma : "scale", "median", float or None
        Initial bandwidth of a kernel of unit scale, as in `RandomFeatures`; None leaves the kernel unchanged.
    map : "auto", Map, str or None
        Features.  ``"auto"`` takes landmarks where the kernel is searched for and all rows are in memory, and random
        features in streams and on Dask collections; None is the default map of the kernel.  The map must be symmetric.
    projection : Projection, str or None
        Projection of random features; None for the default.
    n_components : "auto" or int
        Width D of the features.  ``"auto"`` takes all rows as landmarks up to 3000 rows; beyond, 1024 features,
        and up to 4096 landmarks where 1024 leave out more than 2 % of the prior variance.
    standardize : "auto" or bool
        Whether columns are brought to mean zero and variance one; ``"auto"`` does it where lengthscales are optimised and
        the kernel is not given with its bandwidth.
    noise : float, default 0.1
        Variance :math:`\sigma^2` of the noise; the initial value if it is optimised.
    amplitude : float, default 1.0
        Variance a of the function where k(x, x) = 1; the initial value if it is optimised.
    optimize : bool, str or sequence of str, default True
        Hyperparameters that are chosen by maximising the marginal likelihood: some of ``"lengthscale"``, ``"noise"``,
        ``"amplitude"``.  True means all that the kernel has, False none.
    ard : "auto" or bool
        Whether each column has its own lengthscale (automatic relevance determination).  ``"auto"`` tries both and takes
        the higher marginal likelihood, less half the logarithm of the number of rows for each lengthscale.
    n_restarts : int, default 0
        Number of additional starting points of the search over lengthscales, up to a factor of ten away.
    optimize_rows : int, default 5000
        Largest number of rows for the search over lengthscales; they are sampled if there are more.  The search with exact
        kernels takes at most 1000.
    fit_intercept : bool, default True
        Whether the mean of the targets is the prior mean of the function; otherwise it is zero.
    normalize_y : bool, default False
        Whether targets are divided by their standard deviation (by their root mean square without an intercept); noise and
        amplitude are then in these units.
    solver : {"direct", "cg"}
        How the posterior is computed: from sums of the features, or for wide features by conjugate gradients, with standard
        deviations from 64 functions of the posterior (see Notes).
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Number of threads; None means all.  Results do not depend on it.
    verbose : int, default 0
        Whether long loops show a progress bar.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its lengthscales, in the coordinates ``coordinates_``.
    candidates_ : list of dict
        Kernels that were tried, the best first, with their log marginal likelihoods; empty if none was searched for.
    coordinates_ : Coordinates or None
        Standardisation of the columns.
    noise_, amplitude_ : float
        Variances of the noise and of the function, times ``widening_`` squared.
    widening_ : float
        Factor of all standard deviations: up to 1000 rows it corrects for overfitted lengthscales; 1 otherwise.
    features_ : FeatureMap
        The drawn features.
    posterior_ : Posterior
        Mean and covariance of the weights.
    statistics_ : RegressionStatistics
        Sums over all rows seen.
    scaling_ : Scaling
        Offset and scale of the targets.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood of the fit; with ``solver="cg"`` an estimate, see Notes.
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
    memory.  Here y is centred.  The posterior and the log marginal likelihood are functions of the sums
    :math:`\Phi^T\Phi`, :math:`\Phi^Ty`, :math:`y^Ty` and n, so rows can be added in batches (`partial_fit`) and by
    many machines (`bochner.distributed`).

    Noise and amplitude are chosen by maximising the marginal likelihood on all rows, from one eigendecomposition of
    these sums.  Lengthscales are chosen by L-BFGS-B in their logarithms with W held fixed, on at most ``optimize_rows``
    rows, with gradients through the features (analytic for trigonometric features and landmarks, finite differences for
    other maps).

    On few rows, hyperparameters that maximise the marginal likelihood overfit, and intervals for new rows are too
    short.  Where kernel, noise and amplitude are chosen from at most 1000 rows in memory, the lengthscales are fitted
    again without each third of the rows, and both variances are multiplied by the mean square of the standardised
    errors of the left-out rows (at least 1, at most 1.25 squared).  The mean does not change.

    Copies of rows in memory count once where the lengthscales of a named kernel are searched for, and in a stream once for
    each piece, if no two equal rows have different targets: the marginal likelihood would take copies for observations
    without noise.  Rows with weights stay as they are.

    ``solver="cg"`` forms no D x D matrix: passes over the rows compute the features again and need O(n D) time each, so that
    tens of thousands of features fit in memory.  Noise and amplitude maximise an estimate of the marginal likelihood of all
    rows, by stochastic Lanczos quadrature (ubaru2017) with 16 probes that all hyperparameters share.  The covariance of the
    weights is represented by 64 functions of the posterior, so that standard deviations have a relative error of about 9 %.
    It has no `partial_fit`, and below some 20000 features a direct fit is faster.

    With fewer random features than the data have degrees of freedom, the posterior is overconfident far from the data
    (variance starvation); increase ``n_components`` until the standard deviations no longer change.  Landmarks leave out
    the prior variance :math:`a\,r(x) = a(k(x, x) - |\phi(x)|^2)`.  It is added to the posterior variance of new points and
    to the noise of the rows, which is then :math:`\sigma^2 + a\,r(x_i)`: the fully independent training conditional of
    quinonero2005.  In a stream the ratio of noise and amplitude is that of the first call.

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

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        gamma: Any = None,
        map: Any = "auto",
        projection: Any = None,
        n_components: int | str = "auto",
        standardize: bool | str = "auto",
        noise: float = 0.1,
        amplitude: float = 1.0,
        optimize: Any = True,
        ard: bool | str = "auto",
        n_restarts: int = 0,
        optimize_rows: int = 5000,
        fit_intercept: bool = True,
        normalize_y: bool = False,
        solver: str = "direct",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.map = map
        self.projection = projection
        self.n_components = n_components
        self.standardize = standardize
        self.noise = noise
        self.amplitude = amplitude
        self.optimize = optimize
        self.ard = ard
        self.n_restarts = n_restarts
        self.optimize_rows = optimize_rows
        self.fit_intercept = fit_intercept
        self.normalize_y = normalize_y
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GaussianProcess:
        r"""Fit the model.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : array (n,) or (n, t)
            Targets.
        sample_weight : array (n,), optional
            Weights of the rows: the noise of a row of weight w has the variance :math:`\sigma^2/w`.  An integer weight
            counts as that many repetitions.

        Returns
        -------
        self
        """
        return self._start(self._rows(X, y, sample_weight, reset=True))

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> GaussianProcess:
        """Add a batch of rows to the model.

        The first call draws the features and chooses the lengthscales; later calls keep both.  Noise and amplitude, if
        they are optimised, are those of all rows seen, so batches give the same result as a single fit.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        if isinstance(self.solver, str) and self.solver == "cg":
            raise ValueError(
                "GaussianProcess: solver='cg' needs all rows again, and partial_fit keeps none; use solver='direct'."
            )
        first = not hasattr(self, "posterior_")
        rows = self._rows(X, y, sample_weight, reset=first)
        if first:
            return self._start(rows, stream=True)
        seen = self.statistics_
        if rows.n_targets != seen.n_targets:
            raise ValueError(
                f"GaussianProcess: expected {seen.n_targets} targets as in the first call of partial_fit, got "
                f"{rows.n_targets}."
            )
        with self._computing():
            return self._finish(self.features_, seen + self._moments(self.features_, rows))

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
            both = rows.map(
                partial(means_and_spreads, **self._fitted(), noise=noise), (2 * t,), np.float64, width=width
            )
        return (both[:, 0], both[:, 1]) if self._single_target else (both[:, :t], both[:, t:])

    def _fitted(self) -> dict[str, Any]:
        return {"phi": self.features_, "fitted": self.posterior_, "scaling": self.scaling_}

    def _predictor(self) -> Callable[[np.ndarray], np.ndarray]:
        return partial(means, **self._fitted(), single=self._single_target)

    def _with_covariance(self, rows: RowSource, noise: float) -> tuple[np.ndarray, np.ndarray]:
        if not rows.in_memory:
            raise ValueError(
                "GaussianProcess: return_cov=True needs all rows in one place; pass an array of some rows, or "
                "return_std=True."
            )
        mean, covariance = means_and_covariance(rows.gathered().X, **self._fitted(), noise=noise)
        return (mean[:, 0], covariance[..., 0]) if self._single_target else (mean, covariance)

    def sample_functions(self, n_samples: int = 1, random_state: Any = 0) -> PosteriorFunctions:
        """Draw functions from the posterior, without noise, that can be evaluated at any points.

        Use it where functions are evaluated step by step, such as in Thompson sampling; values at different points and
        from different calls belong to the same functions.

        Parameters
        ----------
        n_samples : int
            Number of functions.
        random_state : int, RandomState, Generator or None
            Source of randomness.

        Returns
        -------
        callable
            From points (n, d) to values (n, n_samples), or (n, t, n_samples) for t targets.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner.learn import GaussianProcess
        >>> X = np.linspace(-3, 3, 50)[:, None]
        >>> gp = GaussianProcess(random_state=0).fit(X, np.sin(X[:, 0]))
        >>> f = gp.sample_functions(4)
        >>> f([[0.0], [10.0]]).shape, bool(np.allclose(f([[10.0]]), f([[0.0], [10.0]])[1]))
        ((2, 4), True)
        """
        check_is_fitted(self)
        n = check_count("GaussianProcess.sample_functions", "n_samples", n_samples)
        with self._computing():
            return PosteriorFunctions.draw(
                **self._fitted(),
                n_samples=n,
                rng=as_generator(random_state),
                single=self._single_target,
                coordinates=self.coordinates_,
            )

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Evaluate functions drawn by `sample_functions` at rows X.

        The same ``random_state`` draws the same functions, at whatever rows they are evaluated.

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
        rows, n = self._rows(X), check_count("GaussianProcess.sample_y", "n_samples", n_samples)
        functions = self.sample_functions(n, random_state)
        with self._computing():
            return rows.map(functions.at, functions.shape, np.float64, width=functions.width)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
