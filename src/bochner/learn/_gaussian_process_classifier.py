"""Gaussian process classification by Laplace's approximation in the space of the features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._validation import check_count
from ..approximation import FeatureMap
from ..kernels import median_distance
from ..linalg.cholesky import Cholesky
from ._changed_rows import in_coordinates
from ._classes import check_one_kind
from ._equal_rows import equal_rows
from ._estimator import all_or_nothing
from ._feature_parameters import as_generator
from ._hyperparameters import GaussianEstimator, Objective, Others, maximise, stretched
from ._linear.evidence import Evidence
from ._linear.laplace import Passes, find_mode, hessian, laplace_evidence, log_evidence, probabilities, winners
from ._linear.likelihoods import Likelihood, likelihood_of
from ._row_source import Chunk, RowSource, check_finite

_MAX_ORDER = 20_000  # largest order of the covariance matrix of the weights: 3.2 GB
_AMPLITUDE_RANGE = (
    1e-4,
    1e5,
)  # bounds of the search: at its ends probabilities are nearly equal, or nearly zero and one
_BANDWIDTHS, _AMPLITUDES = 2.0 ** np.arange(-4, 2), (1.0, 100.0)
"""Where the search may begin: bandwidths in units of the median distance, and amplitudes."""
_KEPT_NUMBERS = 1 << 25  # size of features that are kept between passes, 256 MB; for more rows they are recomputed


class GaussianProcessClassifier(ClassifierMixin, GaussianEstimator):
    r"""Gaussian process classification with random features, by Laplace's approximation.

    Use it for probabilities that become uncertain far from the data; `KernelClassifier` is faster on many rows.

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
    standardize : "auto" or bool
        Whether columns are brought to mean zero and variance one; ``"auto"`` does it where lengthscales are optimised and
        the kernel is not given with its bandwidth.
    amplitude : float, default 1.0
        Variance a of a latent function where k(x, x) = 1; the initial value if it is optimised.
    optimize : bool, str or sequence of str, default True
        Hyperparameters that are chosen by maximising the marginal likelihood: some of ``"lengthscale"``,
        ``"amplitude"``.  True means all that the kernel has, False none.
    ard : bool, default False
        Whether each column has its own lengthscale (automatic relevance determination).
    n_restarts : int, default 0
        Number of additional starting points of the search over lengthscales, up to a factor of ten away.
    optimize_rows : int, default 1000
        Largest number of rows for the search; they are sampled if there are more.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Number of threads; None means all.  Results do not depend on it.
    verbose : int, default 0
        Whether long loops show a progress bar.

    Attributes
    ----------
    classes_ : array (k,)
        The classes, sorted.
    kernel_ : Kernel
        The kernel with its lengthscales.
    amplitude_ : float
        Variance of the latent functions.
    features_ : FeatureMap
        The drawn features.
    weights_ : float64 array (D, 1) or (D, k)
        The posterior mode of the weights.
    root_ : float64 array (D k, D k)
        R with :math:`RR^T` the covariance of the weights, those of the first latent function first.
    log_marginal_likelihood_value_ : float
        Laplace's log marginal likelihood of the fit.
    n_iter_ : int
        Number of Newton steps of the last fit.
    n_features_in_ : int
        Number of columns of the data.

    See Also
    --------
    KernelClassifier : Faster classification on many rows.

    Notes
    -----
    Latent functions are :math:`f_c(x) = \phi(x)\cdot w_c` with :math:`w_c \sim N(0, aI)`.  Two classes have one latent
    function and the logistic likelihood; k > 2 classes have k latent functions and the softmax likelihood, in contrast
    to one-versus-rest.  The posterior of the weights is approximated by a Gaussian at its mode with the curvature
    there, in O(n D^2) time for two classes and O(n D^2 k^2) for k, with memory for the (D k) x (D k) matrix.

    Probabilities are means over that posterior, computed as averages over 512 fixed points per row (see
    `expected_probabilities`), which is more accurate than MacKay's closed form.  The predicted class has the highest
    mean.

    Laplace's marginal likelihood is maximised by L-BFGS-B over the logarithms of lengthscales and amplitude with W held
    fixed, with its full gradient, on at most ``optimize_rows`` rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import GaussianProcessClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> gp = GaussianProcessClassifier(n_components=64, random_state=0).fit(X, y)
    >>> bool(gp.score(X, y) > 0.95)
    True
    >>> other, same = gp.predict_proba([[1.0, 1.0]])[0]
    >>> bool(same > 0.9 and np.isclose(other + same, 1))
    True
    """

    known = ("lengthscale", "amplitude")

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        gamma: Any = None,
        map: Any = None,
        projection: Any = None,
        n_components: int = 256,
        standardize: bool | str = "auto",
        amplitude: float = 1.0,
        optimize: Any = True,
        ard: bool = False,
        n_restarts: int = 0,
        optimize_rows: int = 1000,
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
        self.amplitude = amplitude
        self.optimize = optimize
        self.ard = ard
        self.n_restarts = n_restarts
        self.optimize_rows = optimize_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GaussianProcessClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : array (n,)
            Class labels.
        sample_weight : array (n,), optional
            Weights of the rows; an integer weight counts as that many repetitions.

        Returns
        -------
        self
        """
        rows = self._rows(X, y, sample_weight, reset=True)
        classes, labels = np.unique(rows.gathered().targets, return_inverse=True)
        self._check(classes)
        rng = as_generator(self.random_state)
        rows = rows.relabelled(partial(_labelled, labels=labels), 1, weighted=rows.weighted)
        with self._computing():
            self.coordinates_ = self._column_coordinates(rows)
            rows = in_coordinates(self.coordinates_, rows)
            phi, amplitude = self._tuned(self._drawn(rows, rng), rows, len(classes), rng)
            return self._finish(phi, _passes(phi, rows, len(classes)), classes, amplitude)

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        return self._each(X, partial(winners, classes=self.classes_), (), self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, averaged over the posterior.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.

        Returns
        -------
        array (n, k)
        """
        check_is_fitted(self)
        return self._each(X, probabilities, (len(self.classes_),), np.float64)

    def _each(self, X: Any, work: Callable[..., np.ndarray], tail: tuple[int, ...], dtype: Any) -> Any:
        rows = self._rows(X)
        work = partial(work, phi=self.features_, weights=self.weights_, root=self.root_, amplitude=self.amplitude_)
        with self._computing():
            return rows.map(work, tail, dtype, width=self.features_.n_features_out)

    def log_marginal_likelihood(
        self, theta: Any = None, X: Any = None, y: Any = None, *, eval_gradient: bool = False
    ) -> Any:
        """Return Laplace's log marginal likelihood, and its gradient.

        Parameters
        ----------
        theta : array (1,), (2,) or (1 + d,), optional
            Logarithms of the amplitude and, if given, of the lengthscale or lengthscales; None means the fitted ones.
        X, y : arrays, optional
            Rows to evaluate on.  If omitted, the value of the last fit is returned, which requires ``theta=None``.
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
        if X is None:
            if theta is not None or eval_gradient:
                raise ValueError(
                    "GaussianProcessClassifier.log_marginal_likelihood: theta and the gradient need X and y, since the fit "
                    "keeps no rows."
                )
            return self.log_marginal_likelihood_value_
        logs = np.log([self.amplitude_]) if theta is None else np.asarray(theta, dtype=np.float64)
        if logs.shape not in [(1,), (2,), (1 + self._n_columns,)]:
            raise ValueError(
                f"GaussianProcessClassifier.log_marginal_likelihood: theta must have 1, 2 or {1 + self._n_columns} "
                f"entries, logarithms of amplitude and lengthscales, got shape {logs.shape}."
            )
        rows, targets, _ = self._rows(X, y).gathered()
        n_scales = len(logs) - 1
        with self._computing():
            objective = _objective(self.features_, rows, self._labels(targets), len(self.classes_), n_scales)
            value, gradient = objective(np.roll(logs, n_scales))
        return (value, np.roll(gradient, -n_scales)) if eval_gradient else value

    def _labels(self, y: np.ndarray) -> np.ndarray:
        labels = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        if not np.array_equal(self.classes_[labels], y):
            unknown = sorted(set(np.asarray(y).tolist()) - set(self.classes_.tolist()))
            raise ValueError(f"GaussianProcessClassifier: y has labels that were not in the fit: {unknown}.")
        return labels

    def _check(self, classes: np.ndarray) -> None:
        owner = "GaussianProcessClassifier"
        if len(classes) < 2:
            raise ValueError(f"{owner}: requires 2 or more classes, got {len(classes)} class in y.")
        self._check_parameters()
        k = 1 if len(classes) == 2 else len(classes)
        order = k * check_count(owner, "n_components", self.n_components)
        if order > _MAX_ORDER:
            raise ValueError(
                f"{owner}: n_components={self.n_components} times {k} latent functions make a posterior of order {order}, "
                f"more than {_MAX_ORDER}; lower n_components to {_MAX_ORDER // k}, or use KernelClassifier."
            )

    def _checked_targets(self, y: np.ndarray) -> np.ndarray:
        check_one_kind(type(self).__name__, y)
        check_classification_targets(y)
        return y

    def _tuned(
        self, phi: FeatureMap, rows: RowSource, n_classes: int, rng: np.random.Generator
    ) -> tuple[FeatureMap, float]:
        """Return the draw with the best lengthscales, and the best amplitude, where they are free."""
        free, n_scales = self._free(), self._n_free_scales(phi, rows.shape[1])
        if not n_scales and "amplitude" not in free:
            return phi, float(self.amplitude)
        some, some_labels, weights = rows.sample_weighted(self.optimize_rows, rng)
        start = np.log([float(self.amplitude)])
        bounds = np.log([_AMPLITUDE_RANGE]) if "amplitude" in free else np.array([[start[0], start[0]]])
        objective = _objective(phi, some, some_labels, n_classes, n_scales, weights)
        restarts = self.n_restarts if n_scales else 0
        starts = [(phi, start)]
        if n_scales and self._bandwidth_is_free():  # from either alone the search may end at a lower maximum
            starts.append(_on_grid(objective, np.log(_AMPLITUDES) if "amplitude" in free else start))
        found = []
        for objective.phi, first in starts:
            others = Others(lambda Phi, first=first: first, bounds)  # type: ignore[misc]
            found.append((objective.phi, maximise(objective, others, restarts, rng, verbose=self.verbose)))
        at, best = max(found, key=lambda one: one[1].value)
        return stretched(at, best.lengthscales) if n_scales else phi, float(np.exp(best.logs[0]))

    def _finish(
        self, phi: FeatureMap, rows: Passes, classes: np.ndarray, amplitude: float
    ) -> GaussianProcessClassifier:
        k = 1 if len(classes) == 2 else len(classes)
        mode = find_mode(rows, phi.n_features_out, k, amplitude)
        factor = Cholesky.of(hessian(rows, mode.weights, amplitude), overwrite=True)
        self.classes_, self.features_, self.amplitude_ = classes, phi, amplitude
        self.weights_, self.n_iter_ = mode.weights, mode.n_steps
        self.log_marginal_likelihood_value_ = log_evidence(mode, factor, amplitude)
        self.root_ = factor.inverse_root()
        return self


def _labelled(y: Any, weights: Any, *, labels: np.ndarray) -> tuple[np.ndarray, Any]:
    """Replace class labels by their indices."""
    return labels, weights


def _passes(phi: FeatureMap, rows: RowSource, n_classes: int) -> Passes:
    """Passes over features and likelihoods, which are kept for few rows and recomputed for many."""

    def walk(chunks: Iterator[Chunk]) -> Iterator[tuple[np.ndarray, Likelihood]]:
        return (
            (check_finite(rows.owner, np.asarray(phi.queries(X))), likelihood_of(labels, n_classes, weights))
            for X, labels, weights in chunks
        )

    if rows.count() * phi.n_features_out > _KEPT_NUMBERS:
        return lambda: rows.reduce(walk, width=phi.n_features_out)
    kept = list(rows.reduce(walk, width=phi.n_features_out))
    return lambda: iter(kept)


def _objective(
    phi: FeatureMap,
    X: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    n_scales: int,
    weights: np.ndarray | None = None,
) -> Objective:
    """Laplace's log marginal likelihood of rows in lengthscales and amplitude."""
    likelihood = likelihood_of(labels, n_classes, weights)

    def evidence(Phi: np.ndarray, logs: np.ndarray) -> Evidence:
        return laplace_evidence(Phi, likelihood, float(np.exp(logs[0])))

    return Objective(phi, X, evidence, n_scales)


def _on_grid(objective: Objective, logs: np.ndarray) -> tuple[FeatureMap, np.ndarray]:
    """The draw at the best bandwidth of a grid, and the logarithm of its amplitude, one of ``logs``.

    From a bandwidth that is far too short for many columns, or with rows that repeat, the search ends where every row is
    alone, and all new rows are alike.
    """
    kernel: Any = objective.phi.spec.kernel
    median = median_distance(objective.X[equal_rows(objective.X)[0]], metric=kernel.metric or "euclidean")
    best, found = -np.inf, (objective.phi, logs[:1])
    for factor in _BANDWIDTHS:
        phi = stretched(objective.phi, np.array([median * factor]))
        Phi = np.asarray(phi.queries(objective.X))
        for k in range(len(logs)):
            try:
                value = objective.evidence(Phi, logs[k : k + 1]).value
            except LinAlgError:
                continue
            if value > best:
                best, found = value, (phi, logs[k : k + 1])
    return found
