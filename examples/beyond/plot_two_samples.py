"""
Do two samples differ, and where?
=================================

``mmd_test`` compares two samples in time linear in their rows, with an exact p-value, and
names the directions in which they differ most. Here the means of all columns agree, and one
column of today's rows varies more.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner.statistics import mmd_test

rng = np.random.default_rng(0)
last_week, today = rng.standard_normal((3000, 6)), rng.standard_normal((1000, 6))
today[:, 2] *= 1.3
found = mmd_test(last_week, today, rng=0)
same = mmd_test(last_week[:1500], last_week[1500:], rng=0)
print(
    f"last week against today: p = {found.p_value:.3f}; two halves of last week: p = {same.p_value:.3f}"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.hist(found.null, bins=30, color="C0", alpha=0.6, label="permuted labels")
left.axvline(found.observed, color="C1", linewidth=2, label="observed")
left.set(xlabel="squared distance of the mean features", ylabel="permutations")
left.locator_params(axis="x", nbins=4)
left.legend()
right.bar(range(6), np.abs(found.directions[0]), color="C1")
right.set(xlabel="column", ylabel="weight in the first direction", title="where they differ")
plt.show()
