"""Kernel machines: features, and a method that learns targets from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._validation import check_flag, check_option
from ..kernels import Gaussian
from ..maps import OptimalPositive
from .base import FeatureEstimator
from .nadaraya_watson import NadarayaWatsonMachine
from .ridge_machine import RidgeMachine
from .specification import Drawn, FeatureParameters

METHODS = ("ridge", "nadaraya-watson")
GAUSSIAN_NAMES = ("gaussian", "rbf")


def streams(machine: Any) -> bool:
    """Whether rows may come in parts: leaving each out needs all of them again."""
    if isinstance(machine.alpha, str) and machine.alpha == "loo" and machine.method == "ridge":
        raise AttributeError(
            f"{type(machine).__name__}: alpha='loo' looks at every row again, and partial_fit keeps none; use alpha='gcv'."
        )
    return True


class KernelMachine(FeatureEstimator, ABC):
    """Common body of regression and classification; a subclass turns its y into a matrix of targets and back."""

    method: str
    alpha: Any
    alphas: Any
    fit_intercept: bool
    solver: str
    verbose: Any

    machine_: RidgeMachine | NadarayaWatsonMachine

    @property
    def coef_(self) -> np.ndarray:
        """Coefficients of the features: (t, n_components), or (n_components,) for a single target of one dimension."""
        B = self._ridge().solution.coefficients
        return B[:, 0] if self._single else B.T

    @property
    def intercept_(self) -> Any:
        """Intercepts (t,), or a number for a single target of one dimension."""
        intercept = self._ridge().solution.intercept
        return float(intercept[0]) if self._single else intercept

    @property
    def alpha_(self) -> Any:
        """The strength that was used."""
        return self._ridge().solution.alpha

    def _ridge(self) -> RidgeMachine:
        check_is_fitted(self, "machine_")
        if not isinstance(self.machine_, RidgeMachine):
            raise AttributeError(f"{type(self).__name__}: coefficients belong to method='ridge', got {self.method!r}.")
        return self.machine_

    def _parameters(self) -> FeatureParameters:
        """As given; weighted averages need positive weights, so their default map is positive where there is one."""
        parameters = super()._parameters()
        gaussian = isinstance(self.kernel, Gaussian) or (isinstance(self.kernel, str) and self.kernel in GAUSSIAN_NAMES)
        if self.method == "nadaraya-watson" and self.map is None and gaussian:
            return parameters._replace(map=OptimalPositive())
        return parameters

    def _new_machine(self) -> RidgeMachine | NadarayaWatsonMachine:
        owner = type(self).__name__
        check_option(owner, "method", self.method, METHODS)
        check_flag(owner, "fit_intercept", self.fit_intercept)
        if self.method == "nadaraya-watson":
            return NadarayaWatsonMachine(owner)
        return RidgeMachine(owner, self.alpha, self.alphas, self.fit_intercept, self.solver)

    def _fit_targets(self, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Draw features, learn all rows; attributes change only when all went well."""
        machine = self._new_machine()
        with self._threads():
            drawn = self._drawn(X, weights, symmetric=machine.symmetric)
            machine.fit(drawn.features, X, Y, weights, self.verbose)
        (self.features_, self.kernel_), self.machine_ = drawn, machine

    def _add_targets(self, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Learn more rows; features are drawn at the first call."""
        machine, first = self._new_machine(), not hasattr(self, "machine_")
        if not first:
            self._go_on(machine, Y.shape[1])
        with self._threads():
            drawn = (
                self._drawn(X, weights, symmetric=machine.symmetric) if first else Drawn(self.features_, self.kernel_)
            )
            machine.add(drawn.features, X, Y, weights, self.verbose)
        (self.features_, self.kernel_), self.machine_ = drawn, machine

    def _go_on(self, machine: Any, n_targets: int) -> None:
        """Let a machine with the options of now take over what was learned, if it can learn these targets too."""
        owner = type(self).__name__
        known: Any = self.machine_
        if type(machine) is not type(known):
            raise ValueError(f"{owner}: method={self.method!r} cannot go on from rows that another method has learned; "
                             f"call fit.")  # fmt: skip
        if n_targets != known.n_targets:
            s = "s" if known.n_targets > 1 else ""
            raise ValueError(f"{owner}: expected {known.n_targets} target{s} as in the first call, got {n_targets}.")
        machine.go_on_from(known)

    def _predicted(self, X: Any) -> np.ndarray:
        """Predicted targets (n, t)."""
        X = self._validated(X)
        with self._threads():
            return self.machine_.predict(self.features_, X)

    def _weights(self, sample_weight: Any, X: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        weights: np.ndarray = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return weights

    @property
    @abstractmethod
    def _single(self) -> bool:
        """Whether predictions have one number a row."""
