"""The automatic kernel machine as a contender, beside the mechanisms that ``bochner compare --target`` judges."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..learn import KernelClassifier, KernelRidge
from ..selection._budget import Shared
from ..selection._code import Snippet
from ..selection._contenders import Outcome
from ..selection._peers import ScikitContender
from ..selection._task import Part, Task


class AutomaticMachine(ScikitContender):
    """`KernelRidge` or `KernelClassifier`, which choose features, bandwidth and regularisation by themselves.

    Parameters
    ----------
    task : Task
        What to predict.
    kernel : str
        Name of the kernel.
    width : int
        Number of features.
    """

    ours = True

    def __init__(self, task: Task, kernel: str, width: int) -> None:
        super().__init__(task)
        self.kernel, self.width = kernel, width
        self.estimator: Any = KernelClassifier if self.classifies else KernelRidge
        self.label = f"{self.estimator.__name__}, automatic"

    def judge(self, part: Part, task: Task, seed: int, shared: Shared) -> Outcome:
        """See `Contender.judge`."""
        model = self.estimator(self.kernel, n_components=self.width, standardize=task.scaled > 0, random_state=seed)
        shared.check()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a choice at the edge of its grid, once per fold
            return self.outcome(model, part, task, {})

    def work(self, n: int, d: int, t: int) -> float:
        """See `Contender.work`."""
        return float(n**1.3)

    def snippet(self, settings: Mapping[str, Any], task: Task) -> Snippet:
        """See `Contender.snippet`."""
        name, itself = self.estimator.__name__, task.scaled == task.X.shape[1]
        step = f"{name}({self.kernel!r}, n_components={self.width}, standardize={itself}, random_state=0)"
        return Snippet((f"from bochner.learn import {name}",), (), (step,), itself)
