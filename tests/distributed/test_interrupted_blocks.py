"""A failure or an interruption in the middle of the blocks leaves every estimator exactly as it was."""

from __future__ import annotations

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

from bochner import distributed

X = np.random.default_rng(0).standard_normal((80, 3))
Y = (X[:, 0] > 0).astype(int)
SMALL = {"n_components": 8, "random_state": 0}
ESTIMATORS = {
    "ridge": distributed.KernelRidge(**SMALL),
    "average": distributed.KernelRidge(method="nadaraya-watson", map="positive", **SMALL),
    "classifier": distributed.KernelClassifier(**SMALL),
    "process": distributed.GaussianProcess(optimize=("noise", "amplitude"), **SMALL),
}


def blocks(array):
    return da.from_array(array, chunks=(20, *array.shape[1:]))


def failing(exception):
    """Rows whose third block cannot be computed."""

    def block(rows, block_info=None):
        if block_info[0]["chunk-location"][0] == 2:
            raise exception("in the third block")
        return rows

    return blocks(X).map_blocks(block, dtype=float, meta=np.empty((0, 3)))


@pytest.mark.parametrize("exception", (MemoryError, KeyboardInterrupt))
@pytest.mark.parametrize("method", ("fit", "partial_fit"))
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.swept(2)
def test_nothing_changes(name, method, exception):
    with dask.config.set(scheduler="synchronous"):
        model = pickle.loads(pickle.dumps(ESTIMATORS[name])).fit(blocks(X), blocks(Y))
        before = pickle.dumps(model)
        with pytest.raises(exception, match="in the third block"):
            getattr(model, method)(failing(exception), blocks(Y))
    assert pickle.dumps(model) == before
