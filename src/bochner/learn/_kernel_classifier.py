"""Kernel classification in linear time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._validation import shown
from ._classes import Labels, check_one_kind, class_targets, row_weights
from ._estimator import all_or_nothing
from ._kernel_machine import KernelMachine, streams
from ._linear.leave_one_out import new_to
from ._linear.ridge import RidgeModel
from ._row_source import RowSource
from ._uncertainty import Calibration, left_out_gaps


class KernelClassifier(ClassifierMixin, KernelMachine):
    r"""Kernel classification on random features or landmarks, by ridge regression on the classes or by weighted votes.

    By default it chooses kernel, metric, features and regularisation automatically, as `KernelRidge` does.  Use ridge
    regression, the default, for accuracy, and votes for a fit without tuning parameters.

    Parameters
    ----------
    kernel, gamma, map, projection, n_components, standardize, metric, alpha, alphas, fit_intercept, solver
        See `KernelRidge`.
    random_state, n_jobs, verbose
        See `KernelRidge`.
    method : {"ridge", "nadaraya-watson"}
        Ridge regression on the classes, or weighted votes.
    class_weight : "balanced", dict or None
        Weights of the classes; "balanced" weights are inversely proportional to their frequency.

    Attributes
    ----------
    classes_ : array (k,)
        The classes, sorted.
    coef_, intercept_, alpha_ : arrays or numbers
        The ridge fit on the features, one row per class, or a single row for two classes.
    selection_ : Selection or None
        What was chosen, and why; None if nothing was left to choose.
    features_, coordinates_ : FeatureMap, and Coordinates or None
        The drawn features, and the change of coordinates before them.
    kernel_ : Kernel
        The kernel that they estimate.

    See Also
    --------
    KernelRidge : The same for regression.
    GaussianProcessClassifier : Calibrated probabilities, for fewer rows.

    Notes
    -----
    ``method="ridge"`` regresses targets of 1 for a class and -1 for the others, all classes at once from one
    decomposition, as ``RidgeClassifier`` does; the largest score wins.  The automatic mode minimises the leave-one-out
    error rate plus a tenth of the squared error of these targets, which separates choices with equal error rates; with
    ``class_weight`` rows are left out whole, whatever their weight.

    ``method="nadaraya-watson"`` is the estimator of CRT 5.2 and SimRF 5.3: the share of each class in
    :math:`\sum_i k(x, x_i)`.  It is fitted in one pass and has no parameters to tune.  Stabilisers that cancel exactly
    keep large norms from overflowing.  Features of queries and keys may differ.

    Several labels per row (y a matrix of zeros and ones) are learned one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import KernelClassifier
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "inside", "outside")
    >>> bool(KernelClassifier(random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    _target_options: ClassVar[dict[str, Any]] = {"multi_output": True}
    _classes_alike = True
    calibration_: Calibration | None = None

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
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
        y : array (n,) of classes, or (n, k) of zeros and ones
            Classes, or several labels per row.
        sample_weight : array (n,), optional
            Weights of the rows; an integer weight counts as that many repetitions.

        Returns
        -------
        self
        """
        rows = self._rows(X, y, sample_weight, reset=True)
        self._check_method()
        several = rows.n_targets > 1
        labels = rows.reduce_targets(Labels.of)
        classes = np.arange(rows.n_targets) if several else labels.classes
        if len(classes) < 2:
            found = f"one class, {classes.tolist()[0]!r}" if len(classes) else "no rows"
            raise ValueError(f"{type(self).__name__}: y has {found}, and needs at least two classes.")
        self._fit_rows(self._targets(rows, classes, labels, several=several))
        self.classes_, self._several = classes, several
        self.calibration_ = self._calibrated()
        return self

    @available_if(streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows; the result is that of one fit on all rows, with the features drawn at the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array (k,)
            All classes that will occur; required at the first call, except with several labels per row.

        Returns
        -------
        self
        """
        first = not hasattr(self, "model_")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"{type(self).__name__}: class_weight='balanced' needs all rows at once; pass a dict to partial_fit."
            )
        rows = self._rows(X, y, sample_weight, reset=first)
        self._check_method()
        several = rows.n_targets > 1
        if first:
            known = self._first_classes(rows, classes, several=several)
        else:
            self._check_goes_on(classes, several=several)
            known = np.arange(rows.n_targets) if several else self.classes_
        self._add_rows(self._targets(rows, known, None, several=several))
        self.classes_, self._several, self.calibration_ = known, several, None
        return self

    def decision_function(self, X: Any) -> Any:
        """Return ridge scores, or shares of the votes (their difference for two classes).

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.

        Returns
        -------
        array (n, k), or (n,) for two classes
        """
        check_is_fitted(self)
        return self._each(X, self._after(self._scores()), () if self._binary else (len(self.classes_),))

    def predict(self, X: Any) -> Any:
        """Predict the class, or the labels, of each row.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.

        Returns
        -------
        array (n,) of classes, or (n, k) of labels
        """
        check_is_fitted(self)
        if self._several:
            return self._each(X, self._predictor(), (len(self.classes_),), int)
        return self._each(X, self._predictor(), (), self.classes_.dtype)

    def _predictor(self) -> Callable[[np.ndarray], np.ndarray]:
        if self._several:
            return self._after(partial(_labels, scores=self._scores()))
        return self._after(partial(_winners, scores=self._scores(), classes=self.classes_))

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class.

        With ``method="ridge"`` scores are scaled to the highest likelihood of at most 2048 rows that are left out, which
        needs no other fit; the class of the highest probability is the predicted one.  With ``"nadaraya-watson"`` they
        are the shares of the votes.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.

        Returns
        -------
        array (n, k)
            Non-negative numbers, which add up to one unless there are several labels per row.
        """
        check_is_fitted(self)
        if self.method == "ridge":
            work = partial(self._known_calibration("predict_proba").probabilities, several=self._several)
        else:
            work = partial(_shares, several=self._several)
        return self._each(X, self._after(work), (len(self.classes_),))

    def predict_set(self, X: Any, *, coverage: float = 0.9) -> Any:
        """Return the set of classes that contains the class of a new row with a given probability.

        A class belongs to the set of a row if its probability is at least as high as that which a share ``coverage`` of
        the left-out rows give to their own classes (split conformal prediction, with at most 2048 rows that are left out
        in closed form in place of a calibration set).  Nothing is fitted again.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        coverage : float, default 0.9
            Share of new rows whose class should be in their set.

        Returns
        -------
        array (n, k) of bool
            Members of the set of each row, in the order of ``classes_``.  The most probable class is always one, so that a
            classifier that errs less often than ``1 - coverage`` covers more.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner.learn import KernelClassifier
        >>> X = np.random.default_rng(0).standard_normal((400, 2))
        >>> y = np.where((X**2).sum(axis=1) < 1.2, "inside", "outside")
        >>> model = KernelClassifier("gaussian", random_state=0).fit(X, y)
        >>> model.predict_set(np.array([[0.0, 0.0], [3.0, 3.0]]), coverage=0.95)
        array([[ True, False],
               [False,  True]])
        """
        check_is_fitted(self)
        if not isinstance(coverage, float | np.floating) or not 0 < coverage < 1:
            raise ValueError(
                f"KernelClassifier.predict_set: coverage must be a number between 0 and 1, got {shown(coverage)}."
            )
        if self.method != "ridge" or self._several:
            what = "rows have several labels" if self._several else "method='nadaraya-watson' leaves no rows out"
            raise ValueError(
                f"KernelClassifier.predict_set: sets need one class per row and method='ridge', but {what}."
            )
        work = partial(self._known_calibration("predict_set").sets, coverage=float(coverage))
        return self._each(X, self._after(work), (len(self.classes_),), bool)

    def _known_calibration(self, method: str) -> Calibration:
        """The one that compact() has kept, or one from the rows that this fit keeps."""
        found = self.calibration_ if self.calibration_ is not None else self._calibrated()
        if found is None:
            raise ValueError(
                f"KernelClassifier.{method}: probabilities need leave-one-out scores, which this fit does not keep; "
                f"fit rows in memory, and not by conjugate gradients, or use CalibratedClassifierCV."
            )
        return found

    def _calibrated(self) -> Calibration | None:
        """Slopes from scores to probabilities, by rows that are left out."""
        model, kept = self.model_, self._kept
        if not isinstance(model, RidgeModel) or kept is None or (model.data is None and kept.gaps is None):
            return None
        phi = self._moved_features()
        with self._threads():
            gaps, _ = left_out_gaps(model, phi, kept)
            known = np.isfinite(gaps).all(axis=1) & new_to(phi, kept.X)
        # weights of classes are not weights of rows: probabilities are those of the rows as they come
        own = None if kept.own is None or self.class_weight is not None else kept.own[known]
        return Calibration.of((kept.merged - gaps)[known], kept.targets[known], own, several=self._several)

    def _drop_statistics(self) -> None:
        if self.calibration_ is None:
            self.calibration_ = self._calibrated()
        super()._drop_statistics()

    @property
    def _binary(self) -> bool:
        return len(self.classes_) == 2 and not self._several

    def _scores(self) -> Any:
        """Scores of the classes from predicted targets."""
        return partial(_scores, votes=self.method == "nadaraya-watson", several=self._several, binary=self._binary)

    def _targets(self, rows: RowSource, classes: np.ndarray, labels: Labels | None, *, several: bool) -> RowSource:
        """Rows with the targets that stand for their classes, and with the weights of these."""
        weights = row_weights(rows.owner, self.class_weight, classes, labels, rows.n_targets)
        relabel = partial(
            class_targets, classes=classes, several=several, signed=self.method == "ridge", weights_of=weights
        )
        n_targets = 1 if self.method == "ridge" and len(classes) == 2 and not several else len(classes)
        return rows.relabelled(relabel, n_targets, weighted=rows.weighted or weights is not None)

    def _first_classes(self, rows: RowSource, classes: Any, *, several: bool) -> np.ndarray:
        if several:
            return np.arange(rows.n_targets)
        if classes is not None:
            return np.unique(classes)
        if rows.in_memory:
            raise ValueError(f"{type(self).__name__}: classes must be passed on the first call to partial_fit.")
        return rows.reduce_targets(Labels.of).classes

    def _check_goes_on(self, classes: Any, *, several: bool) -> None:
        """Raise a ValueError for rows of another kind than those already learned."""
        if several != self._several:
            kinds = ("one class", "several labels") if several else ("several labels", "one class")
            raise ValueError(
                f"{type(self).__name__}: y had {kinds[0]} per row in the first call, and has {kinds[1]} now."
            )
        if not several and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"{type(self).__name__}: classes must be those of the first call, {shown(self.classes_.tolist())}, "
                f"got {shown(classes)}."
            )

    def _dense_targets(self, y: Any) -> Any:
        return y.toarray() if sparse.issparse(y) else y  # labels of rows, as scikit-learn's encoders give them

    def _checked_targets(self, y: Any) -> np.ndarray:
        check_one_kind(type(self).__name__, y)
        check_classification_targets(y)
        labels = type_of_target(y) == "multilabel-indicator" and np.isin(y, (0, 1)).all()
        if y.ndim == 2 and not labels:
            if y.shape[1] > 1:
                raise ValueError(
                    f"{type(self).__name__}: y must be classes (n,) or zeros and ones (n, k), got {type_of_target(y)}."
                )
            return np.asarray(column_or_1d(y, warn=True))
        return np.asarray(y)

    @property
    def _single(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _scores(values: np.ndarray, *, votes: bool, several: bool, binary: bool) -> np.ndarray:
    """Scores of predicted targets (n, t): (n, k), or (n,) for two classes."""
    if not votes:
        return values[:, 0] if binary else values
    if several:
        return 2 * values - 1
    return values[:, 1] - values[:, 0] if binary else values


def _winners(values: np.ndarray, *, scores: Any, classes: np.ndarray) -> np.ndarray:
    found = scores(values)
    best = (found > 0).astype(int) if found.ndim == 1 else found.argmax(axis=1)
    return np.asarray(classes[best])


def _labels(values: np.ndarray, *, scores: Any) -> np.ndarray:
    return np.asarray((scores(values) > 0).astype(int))


def _shares(values: np.ndarray, *, several: bool) -> np.ndarray:
    shares: np.ndarray = np.maximum(values, 0)
    if several:
        np.minimum(shares, 1, out=shares)
        return shares
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
