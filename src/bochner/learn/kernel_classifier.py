"""Kernel classification in linear time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from .base import FLOATS, all_or_nothing
from .machine import KernelMachine, streams


def _has_probabilities(classifier: Any) -> bool:
    if classifier.method != "nadaraya-watson":
        raise AttributeError(
            "KernelClassifier: ridge scores are no probabilities; use method='nadaraya-watson', or wrap it in "
            "CalibratedClassifierCV."
        )
    return True


class KernelClassifier(ClassifierMixin, KernelMachine):
    r"""Kernel classification on random features: by ridge regression on the classes, or by weighted votes.

    Notes
    -----
    ``method="ridge"`` regresses targets of 1 for a class and -1 for the others, all classes at once from one
    decomposition, as ``RidgeClassifier`` does; the largest score wins.

    ``method="nadaraya-watson"`` is the estimator of CRT 5.2 and SimRF 5.3: the share of each class in
    :math:`\sum_i k(x, x_i)`.  It is fitted in one pass without any parameter, computed with stabilisers that cancel, so that
    large norms do not overflow, and features of queries and keys may differ.

    Several labels a row (y a matrix of zeros and ones) are learned one by one.

    Parameters
    ----------
    kernel, gamma, map, projection, n_components, alpha, alphas, fit_intercept, solver, random_state, n_jobs, verbose
        See `KernelRidge`.
    method : {"ridge", "nadaraya-watson"}
        How to classify.
    class_weight : "balanced", dict or None
        Weights of the classes; "balanced" is inverse to their frequency.

    Attributes
    ----------
    classes_ : array (k,)
        The classes, sorted.
    coef_, intercept_, alpha_ : arrays or numbers
        The ridge fit on the features, one row for each class, or a single one for two classes.
    features_ : FeatureMap
        The drawn features.
    kernel_ : Kernel
        The kernel that they estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import KernelClassifier
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "inside", "outside")
    >>> bool(KernelClassifier(gamma=1.0, alpha="gcv", n_components=128, random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        gamma: Any = None,
        map: Any = None,
        projection: Any = None,
        n_components: int = 256,
        alpha: Any = 1.0,
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Draw the features and fit.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        y : array (n,) of classes, or (n, k) of zeros and ones
            Classes, or several labels a row.
        sample_weight : array (n,), optional
            Weights of the rows; a whole number counts as repetitions.
        """
        X, y = self._validated_pair(X, y, reset=True)
        several = _several_labels(y)
        classes = np.arange(y.shape[1]) if several else unique_labels(y)
        if not several and len(classes) < 2:
            raise ValueError(f"KernelClassifier: y has one class, {classes[0]!r}, and needs at least two classes.")
        weights = self._class_weights(y, self._weights(sample_weight, X))
        self._fit_targets(X, self._targets(y, classes, several), weights)
        self.classes_, self._several = classes, several
        return self

    @available_if(streams)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> KernelClassifier:
        """Take in more rows: the result is that of one fit on all of them, with the features drawn at the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array (k,)
            All classes that will come; needed at the first call, except for several labels a row.
        """
        first = not hasattr(self, "machine_")
        self._check_class_weight_streams()
        X, y = self._validated_pair(X, y, reset=first)
        several = _several_labels(y)
        if not first:
            self._check_goes_on(classes, several)
        known = self._known_classes(y, classes, several, first=first)
        weights = self._class_weights(y, self._weights(sample_weight, X))
        self._add_targets(X, self._targets(y, known, several), weights)
        self.classes_, self._several = known, several
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n, k), or (n,) for two classes: ridge scores, or shares of the votes (their difference for two).

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        """
        check_is_fitted(self)
        scores = self._predicted(X)
        if self.method == "nadaraya-watson":
            if self._several:
                return 2 * scores - 1
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        return scores[:, 0] if scores.shape[1] == 1 and not self._several else scores

    def predict(self, X: Any) -> np.ndarray:
        """Classes (n,), or labels (n, k).

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        """
        scores = self.decision_function(X)
        if self._several:
            return (scores > 0).astype(int)
        winners = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[winners])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Shares of the classes (n, k), not negative, adding up to one unless there are several labels a row.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Data.
        """
        check_is_fitted(self)
        shares: np.ndarray = np.maximum(self._predicted(X), 0)
        if self._several:
            np.minimum(shares, 1, out=shares)
            return shares
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _targets(self, y: np.ndarray, classes: np.ndarray, several: bool) -> np.ndarray:
        """Ones for the class and, for ridge, -1 for the others; a single column for two classes."""
        member = y if several else y[:, None] == classes
        member = member.astype(np.float64)
        if self.method != "ridge":
            return member
        signed = 2 * member - 1
        return signed[:, 1:] if len(classes) == 2 and not several else signed

    def _class_weights(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        if self.class_weight is None:
            return weights
        by_class = compute_sample_weight(self.class_weight, y)
        return np.asarray(by_class if weights is None else by_class * weights, dtype=np.float64)

    def _check_class_weight_streams(self) -> None:
        if isinstance(self.class_weight, str):
            raise ValueError(
                "KernelClassifier: class_weight='balanced' needs all rows at once; pass a dict to partial_fit."
            )

    def _check_goes_on(self, classes: Any, several: bool) -> None:
        """Refuse rows of another kind than those that were learned."""
        if several != self._several:
            kinds = ("one class", "several labels") if several else ("several labels", "one class")
            raise ValueError(f"KernelClassifier: y had {kinds[0]} a row in the first call, and has {kinds[1]} now.")
        if not several and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"KernelClassifier: classes must be those of the first call, {self.classes_}, got {classes!r}."
            )

    def _known_classes(self, y: np.ndarray, classes: Any, several: bool, *, first: bool) -> np.ndarray:
        if several:
            return np.arange(y.shape[1])
        if first and classes is None:
            raise ValueError("KernelClassifier: classes must be passed on the first call to partial_fit.")
        known = np.unique(classes) if first else self.classes_
        unseen = np.setdiff1d(y, known)
        if len(unseen):
            raise ValueError(f"KernelClassifier: y has {unseen}, which are not among the classes {known}.")
        return np.asarray(known)

    def _validated_pair(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, multi_output=True, reset=reset)
        y = y.toarray() if sparse.issparse(y) else y  # labels of rows, as scikit-learn's encoders give them
        check_classification_targets(y)
        labels = _several_labels(y) and np.isin(y, (0, 1)).all()
        if y.ndim == 2 and not labels:
            if y.shape[1] > 1:
                raise ValueError(
                    f"KernelClassifier: y must be classes (n,) or zeros and ones (n, k), got {type_of_target(y)}."
                )
            y = _column(y)
        return X, y

    @property
    def _single(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _several_labels(y: np.ndarray) -> bool:
    return bool(type_of_target(y) == "multilabel-indicator")


def _column(y: np.ndarray) -> np.ndarray:
    """A column as a vector, with scikit-learn's warning."""
    from sklearn.utils.validation import column_or_1d

    return np.asarray(column_or_1d(y, warn=True))
