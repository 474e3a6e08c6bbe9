"""Statistical checks that raise with both numbers.

A check asks |z| < 5 of a mean over independent replicates: a false alarm once in 1.7 million.  The suite makes some
thousands of them at fixed seeds, so a failure is a defect.
"""

from __future__ import annotations

import os

import numpy as np
from scipy import stats

THOROUGH = "BOCHNER_THOROUGH" in os.environ
"""Whether tests that take a part of their cases or repetitions take all of them, as `make thorough` does."""
PART = int(os.environ.get("BOCHNER_PART", "0"))
"""Which part of such cases is taken otherwise."""
Z_MAX = 5.0
P_MIN = 2 * stats.norm.sf(Z_MAX)


def z_score(samples: np.ndarray, expected: float) -> tuple[float, float, float]:
    """z, mean and standard error of independent samples against an expected mean."""
    samples = np.asarray(samples, dtype=np.float64)
    mean = samples.mean()
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    floor = 1e-12 * max(1.0, abs(expected))  # rounding, where the estimator has no variance
    return (mean - expected) / max(error, floor), mean, error


def check_mean(samples: np.ndarray, expected: float, label: str = "") -> None:
    """Raise unless the mean of independent samples agrees with the expected one."""
    z, mean, error = z_score(samples, expected)
    if not abs(z) < Z_MAX:
        raise AssertionError(f"{label} mean {mean:.6g} +- {error:.2g}, expected {expected:.6g}: z = {z:.1f}")


def check_law(samples: np.ndarray, law: object, label: str = "") -> None:
    """Raise unless independent samples pass the Kolmogorov-Smirnov test against a frozen scipy law."""
    result = stats.kstest(samples, law.cdf)
    if not result.pvalue > P_MIN:
        raise AssertionError(f"{label} Kolmogorov-Smirnov distance {result.statistic:.4f}, p = {result.pvalue:.1e}")


def probes(d: int, norm: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Directions where samplers fail differently: one axis, all coordinates alike, and a generic one."""
    generic = np.random.default_rng(seed).standard_normal(d)
    return {
        "e1": norm * np.eye(d)[0],
        "ones": norm * np.ones(d) / np.sqrt(d),
        "generic": norm * generic / np.linalg.norm(generic),
    }
