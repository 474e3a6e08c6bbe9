"""
When does a fast rotation pay?
==============================

A product with a dense matrix takes d operations per entry, three Hadamard blocks take three
times log2 d, and never form the matrix. The picture has the time of as many rows as columns,
for 500 rows of data, and the memory of the projection.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from bochner.projections import IID, Orthogonal
from bochner.rotations import Hadamard

sizes = (64, 256, 1024, 2048)
projections = {"dense": IID(), "three Hadamard blocks": Orthogonal(Hadamard(3))}


def milliseconds(P, X):
    """Time of a product, best of five."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        P(X)
        found.append(time.perf_counter() - start)
    return 1e3 * min(found)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, projection in projections.items():
    drawn = [projection.sample(d, d, rng=0) for d in sizes]
    data = [
        np.random.default_rng(0).standard_normal((500, d)).astype(np.float32) for d in sizes
    ]
    times = [milliseconds(P, X) for P, X in zip(drawn, data, strict=True)]
    left.loglog(sizes, times, "o-", label=name)
    right.loglog(sizes, [P.nbytes / 1e6 for P in drawn], "o-", label=name)
    print(f"{name}, d = {sizes[-1]}: {times[-1]:.1f} ms, {drawn[-1].nbytes / 1e6:.2g} MB")
left.set(
    xlabel="columns d, and rows of W", ylabel="milliseconds", title="time of 500 products"
)
right.set(xlabel="columns d, and rows of W", ylabel="MB", title="memory of W")
for ax in (left, right):
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
left.legend()
plt.show()
