"""
What do the workers of a cluster do?
====================================

In a fit of ``bochner.distributed``, each worker reads its own blocks of rows, and only sums of
fixed size travel. Left: when each block was read, on two workers. Right: the size of the rows, of
their features, which exist for a moment only, and of the sums.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from bochner.distributed import KernelRidge
from distributed import Client, get_task_stream


@dask.delayed(nout=2)
def pixels(k):
    """Red and green of nine neighbouring pixels of a photograph, and the blue of the middle one."""
    scaled = load_sample_images().images[k].astype(np.float32) / 255
    windows = np.lib.stride_tricks.sliding_window_view(scaled, (3, 3), axis=(0, 1))
    return windows[:, :, :2].reshape(-1, 18), windows[:, :, 2, 1, 1].ravel()


def rows(parts, *columns):
    """The blocks of both photographs as one array."""
    blocks = [da.from_delayed(part, (271_150, *columns), np.float32) for part in parts]
    return da.concatenate(blocks).rechunk((54_230, *columns))


width = 256
parts = [pixels(k) for k in range(2)]
with Client(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
) as client:
    X, y = client.persist([rows([x for x, _ in parts], 18), rows([t for _, t in parts])])
    model = KernelRidge(gamma=0.5, map=None, n_components=width, alpha=0.01, random_state=0)
    with get_task_stream(client) as stream:
        model.fit(X, y)
    print(f"R2 of {len(X):,} rows in {X.numblocks[0]} blocks: {model.score(X, y):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
workers = sorted({task["worker"] for task in stream.data})
spans = [
    (
        workers.index(task["worker"]),
        span["start"],
        span["stop"],
        "_on_block" in str(task["key"]),
    )
    for task in stream.data
    for span in task["startstops"]
    if span["action"] == "compute"
]
begin = min(start for _, start, _, _ in spans)
for worker, start, stop, block in spans:
    color = "C0" if block else "C1"
    left.barh(worker, stop - start, left=start - begin, color=color, edgecolor="white")
left.set(xlabel="seconds", yticks=range(len(workers)), title="blocks of a fit")
left.set_yticklabels([f"worker {k}" for k in range(len(workers))])
sizes = {
    "rows": X.nbytes + y.nbytes,
    "features": 4 * width * len(X),
    "sums of a block": 8 * width**2,
}
bars = right.barh(
    list(sizes), [size / 1e6 for size in sizes.values()], color=["C7", "C7", "C2"]
)
right.bar_label(bars, fmt=" %.3g MB")
right.set(xscale="log", xlim=(0.1, 5000), xlabel="megabytes", title="only the sums travel")
right.invert_yaxis()
plt.show()
