"""Gaussian process regression in the space of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._validation import check_flag, check_positive
from ...approximation import FeatureMap
from ..base import all_or_nothing
from ..specification import as_generator, draw_features
from ..statistics import RegressionStatistics
from ..streaming import dense_rows, features_of, regression_statistics
from .base import ROWS
from .posterior import Posterior, posterior
from .prediction import PosteriorPredictions
from .spectrum import Normal, Spectrum
from .targets import Scaling, columns, normal_equations, scaled_alone
from .tuning import Given, regression_objective, some_rows, tuned_for_regression

_TARGETS: dict[str, Any] = {"multi_output": True, "y_numeric": True}


class GaussianProcess(RegressorMixin, PosteriorPredictions):
    r"""Gaussian process regression with random features, in time linear in the number of rows.

    Notes
    -----
    The function is :math:`f(x) = \phi(x)\cdot w` with :math:`w \sim N(0, aI)`, so that its covariance is
    :math:`a\,\phi(x)\cdot\phi(y) \approx a\,k(x, y)`, and :math:`y = f(x) + \varepsilon` with
    :math:`\varepsilon \sim N(0, \sigma^2)`.  With :math:`B = \Phi^T\Phi + (\sigma^2/a)I`,

    .. math:: w \mid y \sim N(B^{-1}\Phi^Ty,\; \sigma^2B^{-1}),

    which is exactly the Gaussian process of the kernel matrix :math:`a\Phi\Phi^T`, in O(n D^2 + D^3) time and O(D^2) memory.
    All of it, and the log marginal likelihood, comes from the sums :math:`\Phi^T\Phi`, :math:`\Phi^Ty`, :math:`y^Ty`, n:
    rows can come in pieces (`partial_fit`) and from many machines (`bochner.distributed`).

    The marginal likelihood is maximised over noise and amplitude from one eigendecomposition of these sums, on all rows.
    Over lengthscales it is maximised by L-BFGS-B in logarithms, W being held, with gradients through the features
    (analytic for trigonometric ones, differences of the features for other maps), on at most ``optimize_rows`` rows.

    With fewer features than the data has degrees of freedom the posterior is too sure far from the data (variance
    starvation): raise ``n_components`` until the standard deviations settle.

    Parameters
    ----------
    kernel : Kernel or str, default "gaussian"
        A kernel, or its name; at the amplitude one.
    gamma : "scale", "median", float or None
        Bandwidth that a kernel at unit scale starts from, as in `RandomFeatures`; None leaves a kernel as it is.
    map, projection : Map, Projection, str or None
        What is best for the kernel without them.  The map must be symmetric.
    n_components : int, default 256
        Width D of the features.
    noise : float, default 0.1
        Variance :math:`\sigma^2` of the noise; where it is optimised, only a start.
    amplitude : float, default 1.0
        Variance a of the function where k(x, x) = 1; where it is optimised, only a start.
    optimize : bool, str or sequence of str, default True
        What maximises the marginal likelihood: some of ``"lengthscale"``, ``"noise"``, ``"amplitude"``; True means all that
        the kernel has, False none.
    ard : bool, default False
        Whether each column has a lengthscale of its own (automatic relevance determination).
    n_restarts : int, default 0
        Further starts of the search over lengthscales, up to a factor of ten away.
    optimize_rows : int, default 5000
        Rows drawn for the search over lengthscales, if there are more.
    normalize_y : bool, default False
        Whether targets are brought to mean 0 and variance 1; noise and amplitude are then in these units.
    random_state : int, RandomState, Generator or None
    n_jobs : int or None
        Threads; None means all.  Results do not depend on it.
    verbose : int, default 0
        Whether long loops show a progress bar.

    Attributes
    ----------
    kernel_ : Kernel
        With its lengthscales.
    noise_, amplitude_ : float
    features_ : FeatureMap
    posterior_ : Posterior
        Mean and covariance of the weights.
    statistics_ : RegressionStatistics
        Of all rows seen.
    scaling_ : Scaling
        What `normalize_y` subtracts from targets and divides them by.
    log_marginal_likelihood_value_ : float
    n_features_in_ : int

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
        """Fit to rows X (n, d), dense or CSR, and targets y, (n,) or (n, t)."""
        return self._start(*validate_data(self, X, y, **ROWS, **_TARGETS))

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> GaussianProcess:
        """Add rows.

        The first call draws the features and chooses the lengthscales; later ones keep both.  Noise and amplitude, where
        they are optimised, are those of all rows seen: pieces give what one fit gives.
        """
        first = not hasattr(self, "statistics_")
        X, y = validate_data(self, X, y, **ROWS, **_TARGETS, reset=first)
        if first:
            return self._start(X, y)
        Y = columns(y)
        if Y.shape[1] != self.statistics_.n_targets:
            raise ValueError(f"GaussianProcess: expected {self.statistics_.n_targets} targets as in the first call of "
                             f"partial_fit, got {Y.shape[1]}.")  # fmt: skip
        with self._computing():
            more = regression_statistics(self.features_, X, Y, verbose=self.verbose)
            return self._finish(self.features_, self.statistics_ + more)

    def log_marginal_likelihood(
        self, theta: Any = None, X: Any = None, y: Any = None, *, eval_gradient: bool = False
    ) -> Any:
        """Log marginal likelihood of the targets (in the units of ``normalize_y``), and its gradient in ``theta``.

        Parameters
        ----------
        theta : array (2,), (3,) or (2 + d,), optional
            Logarithms of noise, amplitude and, if given, the lengthscale or lengthscales; None means the fitted ones.
        X, y : arrays, optional
            Rows to evaluate on.  Without them it is that of all rows seen, from their statistics, whose lengthscales are
            those of the fit.
        eval_gradient : bool
            Whether to return the gradient too.
        """
        check_is_fitted(self)
        theta = self._theta(theta, X)
        with self._computing():
            if X is None:
                spectrum, (noise, amplitude) = self._spectrum(), np.exp(theta)
                found = spectrum.log_marginal_likelihood(noise, amplitude), spectrum.gradient(noise, amplitude)
            else:
                X, y = validate_data(self, X, y, **ROWS, **_TARGETS, reset=False)
                found = self._value_on(X, y, theta)
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

    def _value_on(self, X: Any, y: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """On other rows: the objective has lengthscales first."""
        n_scales = len(theta) - 2
        rows = dense_rows(X, slice(None))
        objective = regression_objective(self.features_, rows, self.scaling_.apply(columns(y)), n_scales)
        value, gradient = objective(np.roll(theta, n_scales))
        return value, np.roll(gradient, -n_scales)

    def _spectrum(self) -> Spectrum:
        return Spectrum.of(normal_equations(self.statistics_, self.scaling_))

    def _start(self, X: Any, y: np.ndarray) -> GaussianProcess:
        """Draw features, choose their lengthscales, and fit."""
        self._check_parameters()
        rng = as_generator(self.random_state)
        with self._computing():
            phi = draw_features("GaussianProcess", self._parameters(), X, rng, symmetric=True).features
            Y = columns(y)
            phi = self._tuned(phi, X, Y, rng)
            self._single_target = y.ndim == 1
            few = self._of_few_rows(phi, X, Y)
            return self._finish(phi, regression_statistics(phi, X, Y, verbose=self.verbose), few)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("GaussianProcess", "noise", self.noise)
        check_flag("GaussianProcess", "normalize_y", self.normalize_y)

    def _given(self) -> Given:
        free = self._free()
        return Given(
            None if "noise" in free else float(self.noise), None if "amplitude" in free else float(self.amplitude)
        )

    def _tuned(self, phi: FeatureMap, X: Any, Y: np.ndarray, rng: np.random.Generator) -> FeatureMap:
        """The same draw, with the best lengthscales on some of the rows, if they are free."""
        n_scales = self._n_free_scales(phi, X.shape[1])
        if not n_scales:
            return phi
        X, Y = some_rows(X, Y, self.optimize_rows, rng)
        Y = scaled_alone(Y, normalize=self.normalize_y)
        return tuned_for_regression(phi, X, Y, self._given(), n_scales, self.n_restarts, rng, verbose=self.verbose)

    def _of_few_rows(self, phi: FeatureMap, X: Any, Y: np.ndarray) -> Given:
        """Noise and amplitude of rows fewer than features, for which their decomposition is the cheaper one."""
        given = self._given()
        if None not in given or X.shape[0] >= phi.n_features_out:
            return given
        Phi = features_of(phi, X)
        spectrum = Spectrum.of_rows(Phi, scaled_alone(Y, normalize=self.normalize_y))
        return Given(*spectrum.best(**given._asdict()))

    def _finish(self, phi: FeatureMap, statistics: RegressionStatistics, given: Given | None = None) -> GaussianProcess:
        """The posterior of the statistics; attributes are set once all of it is known."""
        scaling = Scaling.of(statistics, normalize=self.normalize_y)
        fitted = _posterior(normal_equations(statistics, scaling), self._given() if given is None else given)
        self.features_, self.statistics_, self.scaling_, self.posterior_ = phi, statistics, scaling, fitted
        self.kernel_ = phi.spec.kernel
        self.noise_, self.amplitude_ = fitted.noise, fitted.amplitude
        self.log_marginal_likelihood_value_ = fitted.log_marginal_likelihood
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _posterior(normal: Normal, given: Given) -> Posterior:
    """With the best noise and amplitude where they are not given."""
    noise, amplitude = given
    if noise is None or amplitude is None:
        noise, amplitude = Spectrum.of(normal).best(**given._asdict())
    return posterior(normal, noise, amplitude)
