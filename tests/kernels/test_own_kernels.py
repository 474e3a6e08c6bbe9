"""Kernels of a user's own, written with public names alone, and the names of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections
from support.checks import check_mean

NAMES = {
    "gaussian", "rbf", "softmax", "arc-cosine-0", "arc-cosine-1", "arc-cosine-2", "angular", "linear", "matern-1/2",
    "matern-3/2", "matern-5/2", "laplacian", "cauchy", "rational-quadratic", "exponential-power-1/2",
    "exponential-power-3/2", "generalized-cauchy", "generalized-matern", "lp-exponential", "kummer", "tricomi",
    "beta",
    "periodic", "locally-periodic", "additive", "gaussian-sum", "first-column",
    "polynomial-2", "polynomial-3", "truncated-exponential",
}  # fmt: skip


@dataclass(frozen=True)
class TwoScales(kernels.Radial):
    """The mean of two Gaussian kernels."""

    lengthscale: float = 1.0
    name: ClassVar[str] = "two-scales"

    def profile(self, xp, q):
        return (xp.exp(-q / 2) + xp.exp(-2 * q)) / 2

    def sample_scales(self, shape, rng):
        return np.random.default_rng(rng).choice([1.0, 2.0], shape)


@dataclass(frozen=True)
class Triangle(kernels.ShiftInvariant):
    """A product of cosines: rows of random signs."""

    lengthscale: float = 1.0
    spectrum: ClassVar[str] = "product"
    metric: ClassVar[str] = "cityblock"

    def entries(self, xp, X, Y):
        z = self.at_unit_scale(X)[..., :, None, :] - self.at_unit_scale(Y)[..., None, :, :]
        return xp.prod(xp.cos(z), axis=-1)

    def sample_rows(self, d, m, rng):
        return np.random.default_rng(rng).choice([-1.0, 1.0], (m, d))


X = np.random.default_rng(1).standard_normal((3, 4))
X.flags.writeable = False


@pytest.mark.parametrize("kernel, rows", [
    (TwoScales(2.0), projections.IID()),
    (TwoScales(2.0), projections.Orthogonal()),
    (Triangle(2.0), projections.IID()),
], ids=str)  # fmt: skip
def test_features_of_an_own_kernel_are_unbiased(kernel, rows):
    spec = Approximation(kernel, maps.Trigonometric(), rows, n_projections=40)
    K = np.array([spec.draw(4, rng=seed).gram(X)[0, 1] for seed in range(200)])
    check_mean(K, kernel(X)[0, 1])


def test_an_own_kernel_takes_part_in_the_bandwidth_rules():
    assert kernels.resolve_bandwidth(TwoScales(), 0.5, X) == TwoScales(1.0)
    assert kernels.resolve_bandwidth(Triangle(), 0.5, X) == Triangle(2.0)
    assert kernels.resolve_bandwidth(TwoScales(), "scale", X).bandwidth > 0


def test_the_law_of_a_radial_kernel_must_be_written():
    @dataclass(frozen=True)
    class Unfinished(kernels.Radial):
        lengthscale: float = 1.0

        def profile(self, xp, q):
            return xp.exp(-q)

    with pytest.raises(TypeError, match=r"abstract method '?sample_scales"):
        Unfinished()


def test_kernels_are_listed_by_the_names_they_declare():
    classes = [vars(kernels)[name] for name in kernels.__all__ if isinstance(vars(kernels)[name], type)]
    found = [name for cls in classes for name in cls.variants()]
    assert len(found) == len(set(found)) and set(found) == NAMES
    assert TwoScales.variants() == {"two-scales": TwoScales()}


@pytest.mark.parametrize("kernel", [kernels.Gaussian(2.0), kernels.Softmax(0.3), kernels.Linear()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_unchecked_scaling_is_the_checked_one(kernel, dtype):
    rows = X.astype(dtype)
    assert kernel.at_unit_scale(rows).dtype == dtype
    np.testing.assert_array_equal(kernel.at_unit_scale(rows), kernel.scaled(rows))
