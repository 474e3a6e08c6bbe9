"""
When did my data begin to drift?
================================

Each batch is compared with as many rows of a reference by ``TwoSampleTest``, whose p-value is exact.
From batch 12 on, two columns become correlated: every column by itself keeps its mean and its spread.
Single batches show it late; four tests merged show it soon, and the first direction names the columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import Approximation, kernels
from bochner.statistics import TwoSampleTest

rng = np.random.default_rng(0)


def batch(n, correlation):
    """Rows of five columns, of which the first two may be correlated."""
    rows = rng.standard_normal((n, 5))
    rows[:, 1] = correlation * rows[:, 0] + np.sqrt(1 - correlation**2) * rows[:, 1]
    return rows


reference = batch(20_000, 0.0)
features = Approximation(kernels.Gaussian(3.0), n_projections=256).draw(5, rng=0)
tests = []
for week in range(24):
    new = batch(1500, 0.06 * max(week - 11, 0))
    rows = reference[rng.choice(len(reference), len(new), replace=False)]
    tests.append(TwoSampleTest(features, n_permutations=999, rng=rng).update(rows, new))

alone, merged, directions = [], [], []
for week in range(24):
    recent = tests[max(week - 3, 0)]
    for test in tests[max(week - 2, 1) : week + 1]:
        recent = recent.merge(test)
    alone.append(tests[week].result().p_value)
    found = recent.result()
    merged.append(found.p_value)
    directions.append(np.abs(found.directions[0]))
for name, values in (("one batch", alone), ("four batches merged", merged)):
    found_in = [week for week, value in enumerate(values) if value <= 0.001]
    print(f"{name}: p = 0.001 is first reached in week {found_in[0] if found_in else 'none'}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogy(alone, "o-", label="one batch")
left.semilogy(merged, "s-", label="four batches merged")
left.axhline(0.001, color="grey", linestyle=":")
left.axvline(11.5, color="C3", linestyle="--", label="the drift begins")
left.set(xlabel="week", ylabel="p-value")
left.legend(fontsize=8)
shown = right.imshow(np.array(directions).T, aspect="auto", vmin=0, cmap="viridis")
right.set(xlabel="week", ylabel="column", title="weight in the first direction")
figure.colorbar(shown, ax=right)
plt.show()
