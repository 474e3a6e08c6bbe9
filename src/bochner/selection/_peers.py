"""Estimators that a practitioner would otherwise use: exact kernel ridge, Nystroem, support vectors, boosting."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import linalg

from ..kernels import Gaussian, Kernel
from ._budget import Shared
from ._code import Snippet
from ._contenders import Bandwidths, Contender, Outcome, ridge_outcome, ridge_trial, ridge_work
from ._leave_one_out import ALPHAS
from ._rivals import TUBE, ExactKernelRidge, boosting, gamma_of, nystroem, support_vectors
from ._task import Part, Task

_EXACT_ROWS = 600
"""Rows on which exact kernel ridge chooses its settings, by leave-one-out; it is then fitted to all training rows."""
_SEARCH_ROWS = 1000
"""Rows on which support vectors choose their settings, three quarters to fit and one quarter to judge."""
_COSTS = (1.0, 10.0, 100.0)
_RATES, _FEW_CLASSES = (0.03, 0.1, 0.3), 3


def peers(task: Task, bandwidths: Bandwidths, width: int) -> list[Contender]:
    """All peers for a task; those with a Gaussian kernel use the given one if it is Gaussian."""
    gaussian = isinstance(bandwidths.kernel, Gaussian) and isinstance(bandwidths.kernel.bandwidth, float)
    rbf = bandwidths if gaussian else Bandwidths(Gaussian(), searched=True)
    return [ExactRidge(bandwidths), NystroemRidge(rbf, width), SupportVectors(task, rbf), Boosting(task)]


class ExactRidge(Contender):
    """Kernel ridge regression with the exact Gram matrix of the training rows."""

    def __init__(self, bandwidths: Bandwidths) -> None:
        self.label, self.bandwidths = "exact kernel ridge", bandwidths

    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """See `Contender.judge`."""
        few = np.random.default_rng(seed).permutation(len(part.X))[:_EXACT_ROWS]
        X, T = part.X[few], part.T[few]
        kernel = self.bandwidths.best(part.X, lambda kernel: _left_out(kernel, X, T, task)[0], shared)
        shared.check()
        alpha = _left_out(kernel, X, T, task)[1]
        start = time.perf_counter()
        model = ExactKernelRidge(kernel, alpha, part.X, part.T)
        middle = time.perf_counter()
        scores = model.scores(part.X_test)
        spent = (time.perf_counter() - middle) / len(part.X_test)
        return Outcome(scores, {"bandwidth": kernel.bandwidth, "alpha": alpha}, middle - start, spent)

    def work(self, n: int, d: int, t: int) -> float:
        """See `Contender.work`."""
        return min(n, _EXACT_ROWS) ** 2 + n**2 / 30


def _left_out(kernel: Kernel, X: np.ndarray, T: np.ndarray, task: Task) -> tuple[float, float]:
    """The lowest leave-one-out loss of exact kernel ridge, and its alpha."""
    s, V = linalg.eigh(np.asarray(kernel(X)), check_finite=False, driver="evd")
    C, squares, losses = V.T @ (T - T.mean(axis=0)), V**2, []
    for alpha in ALPHAS:
        weights = 1 / (np.maximum(s, 0) + alpha)
        residuals = (V @ (weights[:, None] * C)) / (squares @ weights)[:, None]
        losses.append(float(task.losses(T - residuals, T).mean()) + 1e-3 * float(np.mean(residuals**2)))
    best = int(np.argmin(losses))
    return losses[best], float(ALPHAS[best])


class NystroemRidge(Contender):
    """scikit-learn's Nystroem with a ridge, whose alpha is chosen like that of the mechanisms."""

    def __init__(self, bandwidths: Bandwidths, width: int) -> None:
        self.label, self.bandwidths, self.width = "Nystroem + Ridge (scikit-learn)", bandwidths, width

    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """See `Contender.judge`."""
        width = min(int(self.width or 1), len(part.X))

        def trial(kernel: Kernel) -> Any:
            def draw(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
                transform: Callable[[np.ndarray], np.ndarray] = nystroem(gamma_of(kernel), width, seed).fit(X).transform
                return transform

            return ridge_trial(draw, part, task)

        def loss(kernel: Kernel) -> float:
            found = trial(kernel)
            return math.inf if found is None else float(found.fit.loss)

        kernel = self.bandwidths.best(part.X, loss, shared)
        shared.check()
        return ridge_outcome(trial(kernel), part, {"gamma": gamma_of(kernel)})

    def work(self, n: int, d: int, t: int) -> float:
        """See `Contender.work`."""
        return ridge_work(n, int(self.width or 1)) + 100 * min(n, int(self.width or 1)) ** 3  # its SVD

    def snippet(self, settings: Mapping[str, Any], task: Task) -> Snippet:
        """See `Contender.snippet`."""
        ridge = "RidgeClassifier" if task.kind == "classification" else "Ridge"
        imports = "from sklearn.kernel_approximation import Nystroem", f"from sklearn.linear_model import {ridge}"
        features = f"Nystroem(gamma={settings['gamma']:.6g}, n_components={self.width}, random_state=0)"
        return Snippet(imports, (), (features, f"{ridge}(alpha={settings['alpha']:.6g})"))


class ScikitContender(Contender):
    """An estimator with the interface of scikit-learn."""

    def __init__(self, task: Task) -> None:
        self.classifies = task.kind == "classification"

    def _fitted(self, model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
        start = time.perf_counter()
        return model.fit(X, y), time.perf_counter() - start

    def _scores(self, model: Any, X: np.ndarray, task: Task) -> np.ndarray:
        predicted = model.predict(X)
        if self.classifies:
            return np.asarray(2.0 * (predicted[:, None] == np.unique(task.y)) - 1)
        return np.asarray(predicted, dtype=np.float64)[:, None]

    def outcome(self, model: Any, part: Part, task: Task, settings: dict[str, Any]) -> Outcome:
        """Fit an estimator with chosen settings, and predict the test rows."""
        model, seconds = self._fitted(model, part.X, part.y)
        start = time.perf_counter()
        scores = self._scores(model, part.X_test, task)
        return Outcome(scores, settings, seconds, (time.perf_counter() - start) / len(part.X_test))

    def _held_out(self, part: Part, seed: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the rows to fit and of those held out to judge settings."""
        from sklearn.model_selection import train_test_split

        rows = np.random.default_rng(seed).permutation(len(part.X))[:most]
        kinds, counts = np.unique(part.y[rows], return_counts=True)
        even = self.classifies and counts.min() > 1 and len(kinds) <= len(rows) // 4
        fit, judge = train_test_split(rows, test_size=0.25, random_state=seed, stratify=part.y[rows] if even else None)
        return fit, judge


class SupportVectors(ScikitContender):
    """SVR or SVC with the Gaussian kernel."""

    def __init__(self, task: Task, bandwidths: Bandwidths) -> None:
        super().__init__(task)
        self.label, self.bandwidths = "SVC (scikit-learn)" if self.classifies else "SVR (scikit-learn)", bandwidths

    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """See `Contender.judge`."""
        fit, judge = self._held_out(part, seed, _SEARCH_ROWS)
        costs: dict[Kernel, float] = {}

        def loss(kernel: Kernel) -> float:
            losses = {}
            for C in _COSTS:
                shared.check()
                model, _ = self._fitted(
                    support_vectors(gamma_of(kernel), C, classes=self.classifies), part.X[fit], part.y[fit]
                )
                losses[C] = float(task.losses(self._scores(model, part.X[judge], task), part.T[judge]).mean())
            costs[kernel] = min(losses, key=lambda C: losses[C])
            return losses[costs[kernel]]

        kernel = self.bandwidths.best(part.X, loss, shared)
        if kernel not in costs:
            loss(kernel)
        settings = {"gamma": gamma_of(kernel), "C": costs[kernel]}
        shared.check()
        return self.outcome(support_vectors(**settings, classes=self.classifies), part, task, settings)

    def work(self, n: int, d: int, t: int) -> float:
        """See `Contender.work`."""
        return 6 * len(_COSTS) * (min(n, _SEARCH_ROWS) ** 2 + 150**2) + n**2

    def snippet(self, settings: Mapping[str, Any], task: Task) -> Snippet:
        """See `Contender.snippet`."""
        gamma, C = f"gamma={settings['gamma']:.6g}", f"C={settings['C']:g}"
        if self.classifies:
            return Snippet(("from sklearn.svm import SVC",), (), (f"SVC({C}, {gamma})",))
        compose = "from sklearn.compose import TransformedTargetRegressor"
        imports = compose, "from sklearn.preprocessing import StandardScaler", "from sklearn.svm import SVR"
        svr = f"SVR({C}, epsilon={TUBE}, {gamma})"
        return Snippet(imports, (), (f"TransformedTargetRegressor({svr}, transformer=StandardScaler())",))


class Boosting(ScikitContender):
    """Gradient boosting of trees on histograms; the number of trees is chosen by early stopping."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.label = f"HistGradientBoosting{'Classifier' if self.classifies else 'Regressor'} (scikit-learn)"

    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """See `Contender.judge`."""
        fit, judge = self._held_out(part, seed, len(part.X))
        rates = _RATES if part.T.shape[1] <= _FEW_CLASSES else _RATES[1:2]  # one tree per class and round
        share = (
            max(0.1, part.T.shape[1] / len(fit) + 0.05) if self.classifies else 0.1
        )  # a row of each class, to stop early
        found = {}
        for rate in rates:
            shared.check()
            model = boosting(seed, classes=self.classifies, learning_rate=rate, validation_fraction=share)
            model.fit(part.X[fit], part.y[fit])
            loss = float(task.losses(self._scores(model, part.X[judge], task), part.T[judge]).mean())
            found[rate] = loss, max(model.n_iter_, 1)
        rate = min(found, key=lambda rate: found[rate][0])
        settings = {"learning_rate": rate, "max_iter": found[rate][1]}
        shared.check()
        final = boosting(seed, classes=self.classifies, early_stopping=False, **settings)
        return self.outcome(final, part, task, settings)

    def work(self, n: int, d: int, t: int) -> float:
        """See `Contender.work`."""
        return n

    def snippet(self, settings: Mapping[str, Any], task: Task) -> Snippet:
        """See `Contender.snippet`."""
        kind, options = self.label.split()[0], ", ".join(f"{name}={value:g}" for name, value in settings.items())
        step = f"{kind}({options}, early_stopping=False, random_state=0)"
        return Snippet((f"from sklearn.ensemble import {kind}",), (), (step,))
