"""The small data sets of scikit-learn, on which the command line shows what it does."""

from __future__ import annotations

import numpy as np

from .._validation import check_option
from ._read_table import Table

EMBEDDED = ("breast-cancer", "diabetes", "digits", "iris", "wine")
"""Names that `embedded` accepts."""


def embedded(name: str) -> Table:
    """Return one of the small data sets that are part of scikit-learn.

    Parameters
    ----------
    name : str
        One of `EMBEDDED`.

    Returns
    -------
    Table

    Examples
    --------
    >>> from bochner.datasets import embedded
    >>> embedded("wine").X.shape
    (178, 13)
    """
    from sklearn import datasets

    check_option("embedded", "name", name, EMBEDDED)
    loaded = getattr(datasets, f"load_{name.replace('-', '_')}")()
    columns = tuple(map(str, loaded.feature_names))
    return Table(name, np.asarray(loaded.data, np.float64), columns, y=loaded.target, n_numbers=len(columns))
