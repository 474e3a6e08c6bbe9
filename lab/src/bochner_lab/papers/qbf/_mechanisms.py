"""The methods and data of QBF's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Kernel
from bochner.kernels import ArcCosine, Gaussian

from ..._estimates import Estimate
from ..._experiment import dataset

METHODS = {"G": "rff", "Gort": "orf", "ROM": "rom", "QMC": "qmc", "GQ": "gq", "B": "qbf-b", "H": "qbf-h"}
DATA = {"Powerplant": "ccpp", "LETTER": "letter", "USPS": "usps", "MNIST": "mnist", "LEUKEMIA": "leukemia"}
KERNELS = ("gaussian", "arc-cosine-0", "arc-cosine-1")
LARGE = 1000
"""Above this dimension the paper leaves out QMC and GQ, and H, whose exact rotation takes minutes, is left out here."""


def methods_for(d: int) -> tuple[str, ...]:
    """Methods that are run in d dimensions."""
    return tuple(METHODS) if d < LARGE else ("G", "Gort", "ROM", "B")


def kernel_of(name: str, d: int) -> Kernel:
    """The Gaussian with the paper's gamma = 1/d, or an arc-cosine kernel."""
    return Gaussian(np.sqrt(d / 2)) if name == "gaussian" else ArcCosine(int(name[-1]))


def specification(method: str, kernel: Kernel, d: int, n: int) -> Approximation:
    """A method at the width of n rules, D = n (2 (d + 1) + 1); B and H have whole rules."""
    rows = catalogue.mechanism(METHODS[method]).projection
    return Approximation(kernel, projection=rows, n_projections=1).with_width(n * (2 * (d + 1) + 1), d=d)


def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns, without constant ones, and the target."""
    loaded = dataset(DATA[name])
    X = np.asarray(loaded.X, dtype=np.float32)
    deviation = X.std(0)
    return ((X - X.mean(0)) / np.where(deviation > 0, deviation, 1.0)), loaded.y


def paired_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Means over runs (the first axis) by method, and mean differences of every two methods, run by run."""
    numbers = {name: Estimate.of(found).as_numbers() for name, found in values.items()}
    for one in values:
        for other in values:
            if one != other:
                numbers[_over(one, other)] = Estimate.of(np.subtract(values[one], values[other])).as_numbers()
    return numbers


def difference(numbers: Mapping[str, Any], one: str, other: str) -> Estimate:
    """How much larger the numbers of one method are than those of another, in pairs of runs."""
    return Estimate.read(numbers[_over(one, other)], numbers["runs"])


def _over(one: str, other: str) -> str:
    return f"{one} - {other}"
