"""
When did my data begin to drift?
================================

Thirteen people wrote scikit-learn's digits, one after the other: later rows come from other hands.
Batches of them are compared with the first 600 rows by ``TwoSampleTest``, whose p-value is exact;
three tests merged find what a single one may miss. In random order, there is nothing to find.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from bochner import Approximation, kernels
from bochner.statistics import TwoSampleTest

rng = np.random.default_rng(0)
pixels = load_digits().data / 16
kernel = kernels.resolve_bandwidth(kernels.Gaussian(), "median", pixels[:600])
features = Approximation(kernel, n_projections=256).draw(64, rng=0)


def monitor(rows):
    """Tests of batches of 60 rows, next to a tenth of the reference in turn; and each three of them merged."""
    parts = np.array_split(rng.permutation(rows[:600]), 10)
    batches = enumerate(np.array_split(rows[600:], 20))
    tests = [
        TwoSampleTest(features, n_permutations=999, rng=rng).update(parts[k % 10], new)
        for k, new in batches
    ]
    return tests, [
        a.merge(b).merge(c) for a, b, c in zip(tests, tests[1:], tests[2:], strict=False)
    ]


figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(11, 3.4), layout="constrained", width_ratios=(2, 1, 1)
)
mixed, _ = monitor(rng.permutation(pixels))
tests, merged = monitor(pixels)
first = 600 + 60 * np.arange(1, 21)
for name, found, style in (
    ("as written", tests, "C0o-"),
    ("as written, three merged", merged, "C1s-"),
    ("in random order", mixed, "C7.--"),
):
    p = [test.result().p_value for test in found]
    left.semilogy(first[-len(p) :], p, style, label=name)
    print(f"{name}: p <= 0.01 in {np.mean(np.array(p) <= 0.01):.0%} of the tests")
left.axhline(0.01, color="black", linewidth=0.8, linestyle=":")
left.set(xlabel="rows read", ylabel="p-value", ylim=(7e-4, 6))
left.legend(fontsize=8, loc="upper left", ncols=3)
last = merged[-1]
middle.imshow(np.abs(last.result().directions[0]).reshape(8, 8), cmap="viridis")
middle.set(title="weights of the pixels", xticks=(), yticks=())
unusual = pixels[last.witness(pixels).argsort()[:9]].reshape(3, 3, 8, 8)
unusual = np.pad(unusual, ((0, 0), (0, 0), (1, 1), (1, 1)))
right.imshow(np.vstack([np.hstack(row) for row in unusual]), cmap="gray_r")
right.set(title="the most unusual digits", xticks=(), yticks=())
plt.show()
