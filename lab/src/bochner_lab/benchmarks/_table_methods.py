"""What is compared on tables: each method from training rows as they come to predictions of test rows."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from bochner.kernels import ExponentialPower
from bochner.learn import KernelClassifier, KernelRidge

from ._contenders import Split

OURS, BOOSTING, TUNED_BOOSTING, TREES = (
    "KernelRidge(), KernelClassifier()",
    "HistGradientBoosting",
    "HistGradientBoosting, tuned",
    "ExtraTrees",
)
VECTORS, EXACT, NYSTROEM, SAMPLER = (
    "SVR, SVC, tuned",
    "exact kernel ridge, tuned",
    "Nystroem, tuned",
    "RBFSampler, tuned",
)
XRFM, LINEAR, CONSTANT = "xRFM", "linear", "constant"
CANDIDATE = "candidate: "
BY_FOLDS = "the candidate of the least error by ten folds"
_WIDTH = 300
"""Features of `Nystroem` and `RBFSampler`, at most as many as rows."""
_FOLDS = 3
_FEWER = 3
"""Splits of methods that take more time than all others together: tuned boosting, and the candidates of our own search."""

_MANY_FOLDS, _FEW_ROWS = 10, 200
"""Folds that choose among the candidates, and most rows for which that is affordable: a hundred fits of our own search."""

Predicted = np.ndarray
Fit = Callable[[Split, int], Predicted]


@dataclass(frozen=True)
class Method:
    """A name, and how to predict test rows from training rows and a seed."""

    name: str
    predict: Fit
    needs: str | None = None
    """Package without which it is left out."""
    splits: float = math.inf
    """Splits on which it is measured at most."""
    rows: float = math.inf
    """Training rows with which it is measured at most."""

    @property
    def present(self) -> bool:
        """Whether it can be measured here."""
        return self.needs is None or find_spec(self.needs) is not None


def _ours(split: Split, seed: int, **options: Any) -> Predicted:
    kind: Any = KernelClassifier if split.classes else KernelRidge
    return np.asarray(kind(random_state=seed, **options).fit(split.X, split.y).predict(split.X_test))


def _boosting(split: Split, seed: int) -> Predicted:
    return np.asarray(_booster(split, seed).fit(split.X, split.y).predict(split.X_test))


def _booster(split: Split, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return (HistGradientBoostingClassifier if split.classes else HistGradientBoostingRegressor)(random_state=seed)


def _tuned_boosting(split: Split, seed: int) -> Predicted:
    grid = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}
    return _searched(split, _booster(split, seed), grid)


def _trees(split: Split, seed: int) -> Predicted:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesClassifier if split.classes else ExtraTreesRegressor
    return np.asarray(kind(300, random_state=seed).fit(split.X, split.y).predict(split.X_test))


def _vectors(split: Split, seed: int) -> Predicted:
    from sklearn.svm import SVC, SVR

    C, scale = [0.3, 3.0, 30.0, 300.0], _gammas(split)
    if split.classes:
        return _searched(split, _scaled(SVC()), {"svc__C": C, "svc__gamma": scale})
    return _searched(split, _scaled(SVR(epsilon=0.05)), {"svr__C": C, "svr__gamma": scale}, targets=True)


def _exact(split: Split, seed: int) -> Predicted:
    from sklearn.kernel_ridge import KernelRidge as Exact

    grid = {"kernelridge__alpha": np.logspace(-5, 1, 7), "kernelridge__gamma": _gammas(split)}
    return _searched(split, _scaled(Exact(kernel="rbf")), grid, targets=True, signs=True)


def _features(split: Split, seed: int, kind: Any, name: str) -> Predicted:
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV

    alphas = np.logspace(-6, 2, 9)
    head = RidgeClassifierCV(alphas) if split.classes else RidgeCV(alphas)
    features = kind(n_components=min(_WIDTH, 2 * len(split.X) // 3), random_state=seed)
    return _searched(split, _scaled(features, head), {f"{name}__gamma": _gammas(split)}, targets=not split.classes)


def _nystroem(split: Split, seed: int) -> Predicted:
    from sklearn.kernel_approximation import Nystroem

    return _features(split, seed, Nystroem, "nystroem")


def _sampler(split: Split, seed: int) -> Predicted:
    from sklearn.kernel_approximation import RBFSampler

    return _features(split, seed, RBFSampler, "rbfsampler")


def _linear(split: Split, seed: int) -> Predicted:
    from sklearn.linear_model import LogisticRegression, RidgeCV

    head: Any = LogisticRegression(max_iter=1000) if split.classes else RidgeCV(np.logspace(-4, 4, 17))
    return np.asarray(_scaled(head).fit(split.X, split.y).predict(split.X_test))


def _constant(split: Split, seed: int) -> Predicted:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    head: Any = DummyClassifier() if split.classes else DummyRegressor()
    return np.asarray(head.fit(split.X, split.y).predict(split.X_test))


def _xrfm(split: Split, seed: int) -> Predicted:
    """xRFM, called as its authors do: standardised columns, a fifth of the rows to validate."""
    from sklearn.preprocessing import StandardScaler
    from xrfm import xRFM

    scaler, n = StandardScaler().fit(split.X), 4 * len(split.X) // 5
    X, X_test = (scaler.transform(part).astype(np.float32) for part in (split.X, split.X_test))
    mean, unit = (0.0, 1.0) if split.classes else (split.y.mean(), split.y.std() or 1.0)
    y = split.y if split.classes else ((split.y - mean) / unit).astype(np.float32)
    model = xRFM(
        device="cpu",
        tuning_metric="accuracy" if split.classes else "mse",
        random_state=seed,
        verbose=False,
        n_threads=1,
    )
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        model.fit(X[:n], y[:n], X[n:], y[n:])
        found = np.asarray(model.predict(X_test)).ravel()
    return found if split.classes else found * unit + mean


def _scaled(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), *steps)


def _gammas(split: Split) -> np.ndarray:
    """Around one over the number of columns."""
    return np.asarray(2.0 ** np.arange(-5, 4, 2) / split.X.shape[1])


def _searched(
    split: Split, model: Any, grid: dict[str, Any], *, targets: bool = False, signs: bool = False
) -> Predicted:
    """Predictions of the best of a grid by three folds; ``targets`` are standardised, and ``signs`` stand for classes."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.preprocessing import StandardScaler

    y: np.ndarray = split.y
    if signs and split.classes:
        known = np.unique(split.y)
        y = 2.0 * (split.y[:, None] == known) - 1
    elif targets and not split.classes:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
        grid = {f"regressor__{name}": values for name, values in grid.items()}
    scoring = "accuracy" if split.classes and y.ndim == 1 else "neg_mean_squared_error"
    search = GridSearchCV(model, grid, cv=KFold(_FOLDS, shuffle=True, random_state=0), scoring=scoring)
    found = np.asarray(search.fit(split.X, y).predict(split.X_test))
    return known[found.argmax(axis=1)] if signs and split.classes else found


def _candidates() -> Iterator[Method]:
    """Our machine with its kernel and metric given: what the default chooses among."""
    kernels: dict[str, Any] = {
        "gaussian": "gaussian",
        "matern-3/2": "matern-3/2",
        "laplacian": "laplacian",
        "exponential": ExponentialPower(1.0),
    }
    for name, kernel in kernels.items():
        for metric in (None, "columns", *(("learned",) if name != "laplacian" else ())):  # city blocks have no matrix

            def fit(split: Split, seed: int, kernel: Any = kernel, metric: Any = metric) -> Predicted:
                return _ours(split, seed, kernel=kernel, metric=metric)

            yield Method(f"{CANDIDATE}{name}, {metric or 'no'} metric", fit, splits=_FEWER)


def _by_folds(split: Split, seed: int) -> Predicted:
    """Predictions of the candidate of the least error by ten folds: what cross-validation would choose among them."""
    order = np.random.default_rng(seed).permutation(len(split.X))
    folds = []
    for held in np.array_split(order, _MANY_FOLDS):
        kept = np.setdiff1d(order, held)
        folds.append(replace(split, X=split.X[kept], y=split.y[kept], X_test=split.X[held], y_test=split.y[held]))
    losses = {
        candidate: sum(float(fold.losses(candidate.predict(fold, seed)).sum()) for fold in folds)
        for candidate in _candidates()
    }
    return min(losses, key=lambda candidate: losses[candidate]).predict(split, seed)


METHODS = (
    Method(OURS, _ours),
    Method(BOOSTING, _boosting),
    Method(TUNED_BOOSTING, _tuned_boosting, splits=_FEWER),
    Method(TREES, _trees),
    Method(VECTORS, _vectors),
    Method(EXACT, _exact),
    Method(NYSTROEM, _nystroem),
    Method(SAMPLER, _sampler),
    Method(XRFM, _xrfm, needs="xrfm"),
    Method(LINEAR, _linear),
    Method(CONSTANT, _constant),
    *_candidates(),
    Method(BY_FOLDS, _by_folds, rows=_FEW_ROWS),
)


def error_of(method: Method, split: Split, seed: int) -> float:
    """Share of wrong classes, or the root of the mean squared error, of test rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return split.error(method.predict(split, seed))
