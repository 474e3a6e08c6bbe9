"""Makes the small files of the present format version that `test_files.py` reads ever after; run once per version."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bochner
from bochner.approximation.files import FORMAT

FOLDER = Path(__file__).parent / "files"
MECHANISMS = (
    "orf",
    "sorf",
    "hmd",
    "kac",
    "sgp",
    "bfly",
    "qbf-h",
    "qbf-b",
    "simrf",
    "simrf+",
    "favor++",
    "gerf",
    "poisrf+",
    "geomrf",
    "hrf-angular",
    "hrf-gaussian",
    "hrf-cluster",
    "qmc",
    "ojlt",
)

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    data, X = np.random.default_rng(0).standard_normal((20, 3)), np.linspace(-1, 1, 12).reshape(4, 3)
    for name in MECHANISMS:
        phi = bochner.mechanism(name, n_projections=4).fit(data, rng=0)
        path = FOLDER / f"v{FORMAT}-{name.replace('+', 'p')}.npz"
        phi.save(path)
        np.save(path.with_suffix(".expected.npy"), phi.queries(X))
