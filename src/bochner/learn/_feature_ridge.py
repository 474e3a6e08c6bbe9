"""Ridge regression and classification on features that are given, such as those of a network or of ROCKET."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy import sparse

from ..approximation import Approximation
from ..kernels import Linear
from ._chooser import is_auto
from ._kernel_classifier import KernelClassifier
from ._kernel_machine import KernelMachine, kept_rows
from ._kernel_ridge import KernelRidge
from ._linear.leave_one_out import (
    Judged,
    Score,
    about,
    best_of_many,
    downhill,
    fitted,
    gaps_of_each,
    grid_of,
    losses_of_all,
)
from ._linear.ridge import FewRows, Ridge, RidgeModel
from ._linear.spectrum import Equations, NormalEquations, RowEquations
from ._row_source import Chunk, RowSource
from ._selection import Selection
from ._uncertainty import KEPT_ROWS

_KEPT_NUMBERS, _FEWEST_KEPT = 1 << 23, 256
"""Numbers that the kept rows of wide features may have, 32 MB in float32, and the rows that are kept in any case."""
_FIRST_ROWS, _FEWEST_FEATURES = 1024, 256
"""Rows that choose the alpha from which the search begins, with as many of the features for each row as all rows have: on
all features, few rows would ask for far less regularisation (two decades at 3,000 x 3,000 and 6,000 x 2,000).  With fewer
features than these nothing may be learned."""
_JUDGED_ROWS = 1024  # rows whose leverages are computed to choose alpha: the same ones for each value
_DECOMPOSED = 2048  # order up to which equations are decomposed, rather than factored for one alpha after another
_ALL_TRIED = 512
"""Order up to which every alpha is tried: a search downhill can end on a plateau, and saves little there."""
_CHUNK_NUMBERS = 1 << 22  # numbers of a chunk of rows, whose products are added in one sum
_CLEAR = 100.0
"""Regularisation per rounding error from which products in float32 are accurate enough: 1 % of it at most."""


class GivenFeatures:
    """Rows that are features themselves, in place of a `FeatureMap`."""

    symmetric = True
    spec = SimpleNamespace(kernel=Linear(), map=SimpleNamespace(uses_rows=False))
    """What the linear engine asks for: no row of a random matrix is used."""

    def __init__(self, width: int) -> None:
        self.n_features_in = self.n_features_out = width
        self.features = self

    def factored(self, *, stable: bool) -> None:
        """Return None: given features are not products of others."""

    def at_points(self, X: Any) -> np.ndarray:
        """No row is a landmark."""
        return np.zeros(X.shape[0], dtype=bool)

    def at_unit_scale(self, X: Any) -> Any:
        """Rows as they are."""
        return X

    def queries(self, X: Any) -> np.ndarray:
        """A copy of the rows, dense."""
        return np.asarray(X.toarray()) if sparse.issparse(X) else np.array(X)

    def fill_queries(self, X: Any, out: np.ndarray) -> None:
        """Write the rows."""
        out[:] = X.toarray() if sparse.issparse(X) else X


class OnGivenFeatures(KernelMachine):
    """Mixin for machines whose rows are the features: nothing is drawn, and alpha is all there is to choose."""

    method = "ridge"
    loss = "squared"
    kernel = map = gamma = standardize = None  # there is none to choose

    @property
    def features_(self) -> Any:  # type: ignore[override]
        """The rows themselves."""
        return GivenFeatures(self.n_features_in_)

    @classmethod
    def from_spec(cls, spec: Approximation, **parameters: Any) -> NoReturn:
        """Refuse: rows are features already."""
        raise TypeError(
            f"{cls.__name__}.from_spec: rows are the features, and a specification would draw others from them; use "
            f"Kernel{'Classifier' if cls._classes_alike else 'Ridge'}.from_spec."
        )

    def _method(self) -> Ridge:
        self._check_method()
        alpha = self.selection_.alpha if is_auto(self.alpha) and self.selection_ is not None else self.alpha
        known = getattr(self, "model_", None)
        exact = known.options.exact_products if isinstance(known, RidgeModel) else None
        return Ridge(type(self).__name__, alpha, self.alphas, self.fit_intercept, self.solver, exact)

    def _moved_features(self) -> Any:
        return self.features_

    def _fit_rows(self, rows: RowSource, *, begin: bool = False) -> None:
        """Learn all rows, or the first of them, with the alpha of the least error of rows that are left out."""
        self.selection_, width = None, rows.shape[1]
        method: Ridge = self._method()
        phi: Any = GivenFeatures(width)
        if is_auto(method.solver):  # the dual equations hold the rows twice: below half they are still the smaller ones
            method = replace(method, solver="dual" if not begin and 2 * rows.count() < width else "primal")
        with self._threads():
            every, rows = rows, rows if begin else rows.merged()  # equal rows are left out together
            n = int(np.clip(_KEPT_NUMBERS // width, _FEWEST_KEPT, KEPT_ROWS))
            sample = rows.sample_weighted(n, np.random.default_rng(0))
            if is_auto(self.alpha):
                final = begin or (
                    isinstance(method.solver, str) and method.solver == "cg"
                )  # elsewhere it is a start, and every few of the rows will do
                first, share = (sample, 1.0) if final else _reduced(sample, rows.count())
                alone, judged = _alone(first, method, share, classes=self._classes_alike)
                method = replace(method, alpha=alone.alpha / share)
            method.check(rows.n_targets, in_memory=rows.in_memory)
            blur = _blur(sample, rows)
            exact = isinstance(method.alpha, str) or bool(np.min(method.alpha) < _CLEAR * blur)
            method = replace(method, exact_products=exact or rows.dtype == np.float64)
            if not is_auto(self.alpha) or final:
                self.model_ = (method.begin if begin else method.fit)(phi, rows, verbose=self.verbose)
                score, fit = (alone, "a fit to them alone") if is_auto(self.alpha) else (None, "")
            else:
                model = method.collected(phi, rows, verbose=self.verbose)
                least = 0.0 if method.exact else 10 * blur
                sample = sample.taken(slice(None, None, -(-len(sample.X) // _JUDGED_ROWS)))
                score, judged = _best(model, sample, method, least, classes=self._classes_alike)
                fit = "the fit to all rows"
                self.model_ = replace(model, options=replace(method, alpha=score.alpha)).solved(quiet=True)
            self._kept = kept_rows(every, rows, n) if rows.in_memory else None
            self._n_different = rows.shape[0] if rows.in_memory else 0
        self.__dict__.pop("best_score_", None)
        if score is not None:
            self.best_score_ = -score.error * float((judged.units**2).mean())
            self.selection_ = _selection(score, method, rows, sample, fit)
            self.selection_.announce(type(self).__name__)


def _reduced(sample: Chunk, n: int) -> tuple[Chunk, float]:
    """Some rows of the sample with some of their features, as many for each row as all n rows have, and their share of n."""
    first = sample.taken(slice(None, None, -(-len(sample.X) // _FIRST_ROWS)))
    share, D = min(len(first.X) / n, 1.0), first.X.shape[1]
    kept = np.random.default_rng(0).permutation(D)[: max(round(share * D), _FEWEST_FEATURES)]
    return first._replace(X=np.ascontiguousarray(first.X[:, np.sort(kept)])), share


def _alone(sample: Chunk, method: Ridge, share: float, *, classes: bool) -> tuple[Score, Judged]:
    """The best alpha of a fit to the sample alone: a start for that of all rows, of which it is a share.  As in `_best`."""
    X, Y, weights = sample
    equations, means = fitted(X, Y, weights, intercept=method.intercept)
    F, Z = about(means, X, Y)
    grid = _grid(equations, method) * (1.0 if method.alphas is None else share)
    judged = _judged(Y, weights, classes=classes)
    return best_of_many(equations, F, Z, judged, grid)[0], judged


def _best(model: RidgeModel, sample: Chunk, method: Ridge, least: float, *, classes: bool) -> tuple[Score, Judged]:
    """The alpha of the least error of rows that are left out of the fit to all rows, and what it is judged by."""
    (X, Y, weights), equations = sample, model.equations
    grid = _grid(equations, method)
    grid = grid[grid >= min(least, grid[-1])]
    if isinstance(equations, RowEquations):
        kept = model.kept
        assert isinstance(kept, FewRows)
        judged = _judged(kept.targets, kept.weights, classes=classes)
        if equations.order <= _DECOMPOSED:
            F, Z = about(model.means if method.intercept else None, kept.features, kept.targets)
            return best_of_many(equations, F, Z, judged, grid)[0], judged

        def losses(alpha: float) -> np.ndarray | None:
            gaps = gaps_of_each(equations, kept.weights, alpha)
            return None if gaps is None else judged.losses(gaps)

    else:
        assert isinstance(equations, NormalEquations)
        judged = _judged(Y, weights, classes=classes)
        means = model.means if method.intercept else (np.zeros(X.shape[1]), np.zeros(Y.shape[1]))
        F, Z = X - means[0].astype(X.dtype), Y - means[1]
        losses = partial(losses_of_all, equations, F, Z, judged, single=not method.exact)
    start = None if equations.order <= _ALL_TRIED else method.alpha
    return downhill(losses, judged, grid, start, len(grid)), judged


def _judged(Y: np.ndarray, weights: np.ndarray | None, *, classes: bool) -> Judged:
    """Rows that are judged by squares, as scikit-learn does it for classes too: wrong ones of few rows vary more."""
    return Judged.of(Y, weights, classes=classes)._replace(classes=False)


def _grid(equations: Equations, method: Ridge) -> np.ndarray:
    return grid_of(equations) if method.alphas is None else np.sort(method.grid())


def _blur(sample: Chunk, rows: RowSource) -> float:
    """Bound on the norm of the rounding error of S with products in float32.

    Errors of entries are independent of each other and grow with the root of the rows of a chunk, in whose sums they are
    made.  Measured on 800 and 2000 features, the norm was a tenth of this for independent ones, a third for features of rank
    20, and nine tenths where all share one large component.
    """
    X = sample.X.astype(np.float64)
    square = float(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    n, D = rows.count(), X.shape[1]
    return float(4 * np.finfo(np.float32).eps * square * np.sqrt(n * min(n, _CHUNK_NUMBERS / D) / D))


def _selection(score: Score, method: Ridge, rows: RowSource, sample: Chunk, of: str) -> Selection:
    n = len(sample.X)
    reason = f"alpha {score.alpha:.3g} by leave-one-out errors of {n} rows, in {of}."
    grid = None if method.alphas is None else np.sort(method.grid())
    edges: tuple[str, ...] = ()
    if grid is not None and len(grid) > 1 and score.alpha in (grid[0], grid[-1]):
        edges = (f"alpha {score.alpha:.3g} is at the edge of alphas; extend them, or leave them out.",)
    return Selection(
        repr(Linear()),
        "as they are",
        "none",
        "given",
        rows.shape[1],
        score.alpha,
        score.error,
        score.standard_error,
        reason,
        edges,
    )


class FeatureRidge(OnGivenFeatures, KernelRidge):
    r"""Ridge regression on given features, with the regularisation chosen by leave-one-out errors in closed form.

    Use it where the columns are features already: embeddings of a network, random convolutions, the output of
    `RandomFeatures`.  It replaces scikit-learn's ``RidgeCV`` where that runs out of memory or time: it makes one pass
    over the rows and stores two triangles of the Gram matrix of the features.

    Parameters
    ----------
    alphas : array or None
        Values of alpha to choose among; None for half decades, in units of the mean square of the rows.
    alpha : "auto", float, array (t,), "loo" or "gcv"
        Regularisation, or one value per target.  ``"auto"`` chooses it by leave-one-out errors in the fit to all rows, with
        the leverages of at most 1024 of them; ``"loo"`` with those of all rows and ``"gcv"`` by generalised
        cross-validation, both from a decomposition, which takes longer for wide features.
    fit_intercept : bool, default True
        Whether to fit an unpenalised intercept.
    solver : {"auto", "primal", "dual", "cg"}
        How to solve: the normal equations of the features, the dual ones of the rows (``"auto"`` if rows are fewer than
        half of the features), or conjugate gradients, which form neither.
    n_jobs : int or None
        Number of threads; None for all that the process may use.
    verbose : int
        If positive, fits of more than a few seconds show a progress bar.

    Attributes
    ----------
    coef_, intercept_, alpha_ : arrays or numbers
        The fit; after `partial_fit` it is solved on first access.
    best_score_ : float
        Negative mean squared leave-one-out error, if alpha was chosen; with several targets, each counts in units of
        its standard deviation, and the result is in units of their mean variance.
    selection_ : Selection or None
        The chosen alpha with its error; None if it was given.
    statistics_ : Moments
        Means and second moments of features and targets, which can be added to those of another fit.

    See Also
    --------
    FeatureRidgeClassifier : The same for classes.
    KernelRidge : Draws the features of a kernel first.

    Notes
    -----
    The model minimises :math:`\sum_i w_i|y_i - b - B^Tx_i|^2 + \alpha|B|^2`.  Rows are read in chunks, sparse ones too, and
    only means and products of features are kept, in float64.  Within a chunk, products of float32 rows are computed in
    float32 if the estimated rounding error of all of them is below 1 % of the regularisation, and otherwise in float64.

    The leave-one-out error of a row is :math:`e_i/(1-h_i)`, with its residual and its leverage in the fit to all rows.
    The sum of all squared residuals has a closed form, and 1024 rows estimate the effect of the leverages.  The search
    for alpha begins at the best one of a fit to some rows alone, and goes downhill along the grid with one Cholesky
    factorisation for each value; usually three to five are enough.  Up to 512 features it tries them all.  Equal rows
    are merged first, so that they are left out together.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import FeatureRidge
    >>> rng = np.random.default_rng(0)
    >>> X, B = rng.standard_normal((500, 50)), rng.standard_normal(50)
    >>> y = X @ B + rng.standard_normal(500)
    >>> model = FeatureRidge().fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.coef_.shape
    (True, (50,))
    """

    def __init__(
        self,
        alphas: Any = None,
        *,
        alpha: Any = "auto",
        fit_intercept: bool = True,
        solver: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.n_jobs = n_jobs
        self.verbose = verbose


class FeatureRidgeClassifier(OnGivenFeatures, KernelClassifier):
    """Ridge classification on given features, with the regularisation chosen by leave-one-out errors in closed form.

    Use it in place of scikit-learn's ``RidgeClassifierCV`` for wide features, many rows, rows in batches
    (`partial_fit`), and probabilities (`predict_proba`), which need no second fit.

    Parameters
    ----------
    alphas, alpha, fit_intercept, solver, n_jobs, verbose
        See `FeatureRidge`.
    class_weight : "balanced", dict or None
        Weights of the classes; "balanced" weights are inversely proportional to their frequency.

    Attributes
    ----------
    classes_ : array (k,)
        The classes, sorted.
    coef_, intercept_, alpha_ : arrays or numbers
        The fit, one row per class, or a single row for two classes.
    best_score_ : float
        Negative mean squared leave-one-out error for targets of 1 and -1, if alpha was chosen.
    selection_ : Selection or None
        The chosen alpha with its error; None if it was given.

    See Also
    --------
    FeatureRidge : The same for regression.
    KernelClassifier : Draws the features of a kernel first.

    Notes
    -----
    Targets are 1 for a class and -1 for the others, all from one factorisation, and the largest score wins.  ``alpha`` is
    chosen by the squared errors of these targets, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import FeatureRidgeClassifier, RandomFeatures
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "inside", "outside")
    >>> Z = RandomFeatures(gamma=1.0, n_components=64, random_state=0).fit_transform(X)
    >>> bool(FeatureRidgeClassifier().fit(Z, y).score(Z, y) > 0.95)
    True
    """

    _classes_alike: ClassVar[bool] = True

    def __init__(
        self,
        alphas: Any = None,
        *,
        alpha: Any = "auto",
        fit_intercept: bool = True,
        solver: str = "auto",
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
