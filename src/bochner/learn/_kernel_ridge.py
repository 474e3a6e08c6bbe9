"""Kernel regression in linear time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._validation import shown
from ._chooser import is_auto
from ._estimator import all_or_nothing
from ._kernel_machine import KernelMachine, streams
from ._linear.ridge import RidgeModel
from ._losses import Loss, check_loss, clipped_targets, reweighted
from ._row_source import RowSource
from ._selection import LEARNED
from ._uncertainty import KEPT_ROWS, Intervals, left_out_gaps


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelMachine):
    r"""Kernel ridge regression on random features or landmarks, in time linear in the number of rows.

    By default it chooses the kernel, the metric, the features and the regularisation automatically, and reports its
    choices and their reasons in ``selection_``.  Millions of rows are processed in bounded memory, and rows can be
    added in batches (`partial_fit`).

    Parameters
    ----------
    kernel : "auto", Kernel or str
        ``"auto"`` chooses among the Gaussian, the Matern-3/2, the Laplacian and the exponential kernel; see
        `RandomFeatures` for others.
    gamma : "auto", "scale", "median", float or None
        Bandwidth, see `RandomFeatures`.  ``"auto"`` searches for it, starting from the median distance, if the kernel
        is a name or has unit bandwidth; any other bandwidth of a kernel is kept.  None leaves every kernel as it is.
        With a number, ``kernel="auto"`` means the Gaussian one.
    map : "auto", Map, str or None
        Features, see `RandomFeatures`.  ``"auto"`` takes the exact kernel, landmarks at all rows, up to 3000 rows, and
        otherwise chooses between random features (the default map of the kernel) and `maps.Landmarks`; with a
        ``projection`` they are random.  ``"exact"`` takes the exact kernel of any number of rows, in quadratic time: up to
        about 100,000 rows in memory.  None means random features.
    projection
        See `RandomFeatures`.
    n_components : "auto" or int
        Width of the features.  ``"auto"`` doubles it from 512 while that saves 3 % of the error, up to 4096, or less for
        very many rows.
    standardize : "auto", bool or "robust"
        Whether columns are brought to mean zero and variance one before the features, so that no unit of measurement
        decides which columns matter; sparse rows are only scaled, and stay sparse.  ``"robust"`` takes medians and
        quartiles, and clips columns at five deviations.  In `partial_fit` all of these are those of the first call.
        ``"auto"`` lets the search for a bandwidth decide, and prefers standardised columns; where no bandwidth is
        searched for, it means False.
    metric : "auto", None, "columns", "learned", array (d,) or (d, d)
        Metric M of the distance :math:`(x-y)^TM(x-y)` between rows, after standardisation; (d,) is a diagonal.
        ``"columns"`` learns a scale of each column, and ``"learned"`` a matrix, by the gradients of the prediction on at
        most 1024 rows, so that columns, and then directions, along which it changes count more.  It is evaluated on
        held-out rows, and used only if it clearly lowers their error.  ``"auto"`` tries both; it means None where the
        bandwidth is given.
    alpha : "auto", float, array (t,), "loo" or "gcv"
        Regularisation, or one value per target.  ``"auto"`` chooses it by the leave-one-out errors of at most 2048
        rows, from the fit of all; ``"loo"`` by those of all rows, among ``alphas``.  Rows that are landmarks are left
        out of this estimate.  ``"gcv"``, generalised cross-validation, needs no rows but replaces their leverages by
        the mean: a few outliers make it choose far too little regularisation.
    alphas : array or None
        Values of alpha to choose among; None for half decades.
    fit_intercept : bool, default True
        Whether to fit an unpenalised intercept.
    solver : {"auto", "primal", "dual", "cg"}
        How to solve: the normal equations of the features, the dual ones of the rows, or conjugate gradients, for many
        features on many rows.  "auto" chooses the smaller system, or conjugate gradients for rows in memory and a fixed
        ``alpha`` if an estimate of the costs says that they take less than half of the time.
    method : {"ridge", "nadaraya-watson"}
        Ridge regression, or the kernel average of the targets.
    loss : {"squared", "huber", "quantile"}
        Squares for the mean; Huber's loss, which limits the influence of outliers; or the loss of a conditional
        quantile. The last two keep no statistics, so they do not support `partial_fit`, Dask collections or prediction
        intervals.
    epsilon : float, default 1.35
        Residuals above this many standard deviations, estimated robustly, count linearly in Huber's loss.
    quantile : float, default 0.5
        The quantile to predict with ``loss="quantile"``.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Number of threads; None for all that the process may use.  The result does not depend on it.
    verbose : int
        If positive, fits of more than a few seconds show a progress bar.

    Attributes
    ----------
    coef_, intercept_, alpha_ : arrays or numbers
        The ridge fit on the features; after `partial_fit` it is solved on first access.
    features_ : FeatureMap
        The drawn features, of rows in the coordinates ``coordinates_``.
    coordinates_ : Coordinates or None
        The change of coordinates before the features, a function of rows: a centre, a scale of each column and a
        matrix.  None if there is none.
    kernel_ : Kernel
        The kernel that they estimate.
    selection_ : Selection or None
        What was chosen, why (``selection_.reason``), and the table of all candidates with their errors and standard
        errors (``selection_.candidates``); None if nothing was left to choose.  The reason also goes to the logger
        ``bochner``.
    statistics_ : Moments
        Means and second moments of features and targets; those of two fits with the same features can be added.
    scale_ : float or array (t,)
        Robust standard deviation of the residuals, with ``loss="huber"`` or ``"quantile"``.

    See Also
    --------
    KernelClassifier : The same for classes.
    GaussianProcess : Regression with uncertainty, and hyperparameters chosen by the marginal likelihood.
    bochner.distributed.KernelRidge : The same on Dask collections.

    Notes
    -----
    The model minimises :math:`\sum_i w_i|y_i - b - B^T\phi(x_i)|^2 + \alpha|B|^2`.  As the number of features grows,
    its predictions tend to those of exact kernel ridge regression with the same :math:`\alpha`, without the n x n
    matrix.  ``fit`` keeps means and second moments, but not the features; with fewer rows than features it solves the
    dual instead.  Statistics are accumulated in float64; for float32 data and a fixed ``alpha`` of at least 0.001, the
    products within a chunk are computed in float32, which is faster.  ``solver="cg"`` computes the features again in each
    of some tens of passes over the rows, with a preconditioner from a sample of the rows; the solution is that of the
    normal equations, to about 1e-5 of the predictions.  It keeps no statistics, so it does not support `partial_fit`, and
    the criteria choose ``alpha`` on a sample of at most 2048 rows.  An interrupted `fit` or `partial_fit` leaves the
    estimator unchanged.

    The automatic mode tries some thirty to fifty candidates on a sample of at most 8192 rows.  Kernel, columns and
    bandwidth (from 1/512 to 32 times the median distance) are compared by leave-one-out errors of the exact kernel on
    800 rows, metrics by rows that they were not learned from, map and width by leave-one-out errors of features on 4096
    rows or more.  Errors are squares in units of the variance of the targets, in float64.  Equal rows are merged first,
    with the mean of their targets and the sum of their weights, so that they are left out together.  In `partial_fit`
    the first batch decides, so make it a large one.  A warning is issued if the fit explains nothing, or if the
    bandwidth is at the lower limit of the search.  ``docs/learn.md`` has the algorithm on a page.

    With another loss the model minimises :math:`\sum_i w_i\ell(y_i - b - B^T\phi(x_i)) + \alpha|B|^2`.  With the scale s
    of the residuals, ``scale_``, Huber's loss is :math:`r^2` for :math:`|r|\le c=\epsilon s` and :math:`2c|r|-c^2` beyond;
    that of the quantile :math:`\tau` is :math:`s(|r|+(2\tau-1)r)`, with a parabola for :math:`|r|<s/100`.  Both have the
    units of squares, so that ``alpha`` means the same.  The automatic mode searches with targets that are clipped at five
    robust deviations from their median; the scale is that of left-out residuals of this first fit, and ``alpha`` is chosen
    by the loss of rows that are left out of fits to at most 1024 rows.  Each of some ten to forty reweighted fits then
    takes as long as one by squares.

    ``map="exact"`` solves :math:`(K+\alpha W^{-1})c = y-b` with the Gram matrix K of all rows, without features: by a
    Cholesky factor up to 20,000 rows (``solver="dual"`` for more), from 8192 on in float32 with a few steps of conjugate
    gradients in float64; beyond by conjugate gradients on tiles of the kernel in float32 (``solver="cg"``), to a relative
    error of 1e-4, with up to 2048 pivoted landmarks as preconditioner.  Memory is :math:`4n^2` bytes of the factor
    (:math:`8n^2` up to 8192 rows), or at most 3 GB of tiles and 16 kB per row; tiles beyond are computed again.
    Bandwidth and alpha of the search are tried again on 4096 held-out rows.  The features are then the kernel with the
    rows of the fit, which the model keeps; probabilities and intervals need the factor.

    ``method="nadaraya-watson"`` is the kernel average :math:`\sum_i k(x, x_i)y_i/\sum_i k(x, x_i)`, computed in one
    pass; here features of queries and keys may differ.  Nothing is searched for: ``gamma="auto"`` means "scale" for the
    name of a kernel, and the default map of the Gaussian kernel is `maps.OptimalPositive`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import KernelRidge
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> model = KernelRidge(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.999), model.selection_.map
    (True, 'exact')
    """

    _target_options: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}
    loss: str = "squared"  # of models that were saved before there were others
    epsilon: float = 1.35
    quantile: float = 0.5

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        gamma: Any = "auto",
        map: Any = "auto",
        projection: Any = None,
        n_components: Any = "auto",
        standardize: Any = "auto",
        metric: Any = "auto",
        alpha: Any = "auto",
        alphas: Any = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        method: str = "ridge",
        loss: str = "squared",
        epsilon: float = 1.35,
        quantile: float = 0.5,
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
        self.metric = metric
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.method = method
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the features and fit.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : array (n,) or (n, t)
            Targets.
        sample_weight : array (n,), optional
            Weights of the rows; an integer weight counts as that many repetitions.

        Returns
        -------
        self
        """
        check_loss(self)
        rows = self._rows(X, y, sample_weight, reset=True)
        columns = _columns(rows)
        if self.loss == "squared":
            self._fit_rows(columns)
        else:
            self._fit_loss(columns)
        self._one_dimensional = not rows.target_shape
        return self

    def _fit_loss(self, rows: RowSource) -> None:
        """Choose and begin with squares of clipped targets, and go on with the loss."""
        if not rows.in_memory:
            raise ValueError(
                f"KernelRidge: loss={self.loss!r} makes many passes over the rows, and a Dask collection may be larger than "
                f"memory; use loss='squared', or bochner.learn.KernelRidge on a sample of the rows."
            )
        self._fit_rows(rows.relabelled(clipped_targets, rows.n_targets, weighted=rows.weighted))
        phi, kept, first = self._moved_features(), self._kept, self.model_
        assert isinstance(first, RidgeModel) and kept is not None and rows.in_memory
        sample = rows.some(KEPT_ROWS, np.random.default_rng(0))  # type: ignore[attr-defined]
        with self._threads():
            if first.data is None:  # conjugate gradients, of far more rows than features
                gaps = sample.targets - first.predictor(phi)(sample.X)
            else:
                errors, _ = left_out_gaps(first, phi, kept)
                gaps = sample.targets - (kept.merged - errors)
            found = reweighted(
                first, phi, rows, sample, gaps, Loss(self.loss, float(self.epsilon), float(self.quantile)),
                choose_alpha=is_auto(self.alpha), verbose=self.verbose,
            )  # fmt: skip
        self.model_, self.scale_, self._kept = found.model, found.scale, None
        if self.selection_ is not None:
            alpha = found.model.solution.alpha
            digits = ", ".join(f"{a:.3g}" for a in np.atleast_1d(alpha))
            said = f"by squares of clipped targets, and alpha {digits} by the {self.loss} loss; "
            self.selection_ = replace(self.selection_, alpha=alpha, reason=said + self.selection_.reason)

    @available_if(streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of rows; the result is that of one fit on all rows, with the features drawn at the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.  Rules for gamma and maps that adapt to data only use the rows of the first call.

        Returns
        -------
        self
        """
        first = not hasattr(self, "model_")
        rows = self._rows(X, y, sample_weight, reset=first)
        one_dimensional = not rows.target_shape
        if not first and one_dimensional != self._one_dimensional:
            raise ValueError(
                f"{type(self).__name__}: y must have the shape of the first call, got {1 + len(rows.target_shape)} "
                f"dimensions."
            )
        self._add_rows(_columns(rows))
        self._one_dimensional = one_dimensional
        return self

    def predict(self, X: Any, *, interval: float | None = None) -> Any:
        """Predict the targets of rows X, with intervals if asked for.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        interval : float or None
            Level of prediction intervals, such as 0.9: the share of new targets that they should contain.  They are
            jackknife+ intervals, from at most 2048 rows that are left out in closed form, without fitting again.

        Returns
        -------
        predictions : array (n,) or (n, t)
            In the precision of X.
        bounds : array (n, 2) or (n, t, 2)
            Lower and upper bounds, if ``interval`` is given.
        """
        check_is_fitted(self)
        if interval is None:
            return self._each(X, self._predictor(), () if self._one_dimensional else (self.model_.n_targets,))
        t = self.model_.n_targets
        found = self._each(X, self._intervals(interval), (3 * t,), np.float64)
        mean, bounds = found[:, :t], np.stack([found[:, t : 2 * t], found[:, 2 * t :]], axis=-1)
        return (mean[:, 0], bounds[:, 0]) if self._one_dimensional else (mean, bounds)

    def _intervals(self, level: Any) -> Intervals:
        if not isinstance(level, float | np.floating) or not 0 < level < 1:
            raise ValueError(
                f"{type(self).__name__}.predict: interval must be a number between 0 and 1, got {shown(level)}."
            )
        kept, model = self._kept, self.model_
        if not isinstance(model, RidgeModel) or kept is None or (model.data is None and kept.gaps is None):
            raise ValueError(
                f"{type(self).__name__}.predict: intervals need leave-one-out errors, which this fit does not keep; "
                f"fit rows in memory with method='ridge' and loss='squared', not by conjugate gradients, and do not call "
                f"compact()."
            )
        found = self.selection_
        n_chosen = 0 if found is None else sum(map(is_auto, (self.kernel, self.gamma, self.alpha, self.standardize)))
        if found is not None and found.metric in LEARNED:
            n_chosen += self.n_features_in_
        return Intervals(model, self._moved_features(), kept, float(level), n_chosen=n_chosen, n_rows=self._n_different)

    def _predictor(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._after(_first_column if self._one_dimensional else np.asarray)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.method == "nadaraya-watson"  # an average, not a fit
        return tags

    @property
    def _single(self) -> bool:
        return bool(self._one_dimensional)


def as_columns(y: Any, weights: Any) -> tuple[np.ndarray, Any]:
    """Targets as a matrix, with their weights."""
    return y[:, None] if y.ndim == 1 else y, weights


def _columns(rows: RowSource) -> RowSource:
    return rows.relabelled(as_columns, rows.n_targets, weighted=rows.weighted)


def _first_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0]
