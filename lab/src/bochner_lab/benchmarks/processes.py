"""Gaussian processes as they come: small tables against scikit-learn's exact process, and published splits against SVGP.

Targets are standardised by the training rows, and the negative log density (NLL) is per test row in these units.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bochner.learn import GaussianProcess

from ..datasets import load
from ..datasets._load import in_folder
from ._bench import Result, at_least, at_most, kept_cell
from ._tables import TABLES, Table

ROWS, TEST_ROWS, SPLITS = 300, 1500, 3
"""Sizes of the small tables, where an exact process with a lengthscale for each column takes scikit-learn seconds."""
SMALL = tuple(table for table in TABLES if not table.classes and table.name != "wide")
"""All tables of numbers but that of 800 columns, whose lengthscales scikit-learn would search for an hour."""
PUBLISHED = {
    "elevators": (0.374, 0.437),
    "bike": (0.077, -1.020),
    "pol": (0.140, -0.513),
    "kin40k": (0.165, -0.327),
}
"""RMSE and NLL of SVGP at the published splits."""
LEVEL, LEAST, MOST = 1.96, 0.93, 0.97
"""Deviations of a normal law that contain 95 %, and what must be contained."""
PUBLISHED_SPLITS = 3
"""Published splits of each table that are measured, of ten."""

Numbers = dict[str, float]


def run(names: Sequence[str] = (), folder: Path | None = None) -> Iterator[Result]:
    """Measure what the folder does not have yet, and tell all of it.

    Parameters
    ----------
    names : sequence of str
        Tables, or published splits; all by default.
    folder : Path, optional
        Of the files; without one nothing is kept.
    """
    small = [
        kept_cell(folder, f"{table.name}-{k}", partial(_small, table, k))
        for k in range(SPLITS)
        for table in SMALL
        if not names or table.name in names
    ]
    large = [
        kept_cell(folder, f"published-{name}-{k}", partial(_published, name, k))
        for k in range(PUBLISHED_SPLITS)
        for name in PUBLISHED
        if not names or f"published {name}" in names
    ]
    yield from goals(small, large)


def saved(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Cells of small tables and of published splits in a folder."""
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return [cell for cell in cells if "theirs" in cell], [cell for cell in cells if "theirs" not in cell]


def goals(small: Sequence[Mapping[str, Any]], large: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """Lines for each half of the small tables, and for each published split."""
    for half in ("design", "judging"):
        part: dict[str, list[Mapping[str, Any]]] = {}
        for cell in small:
            if cell["half"] == half:
                part.setdefault(cell["table"], []).append(cell)
        if not part:
            continue

        def mean(cells: Sequence[Mapping[str, Any]], who: str, what: str) -> float:
            return float(np.mean([cell[who][what] for cell in cells]))

        ratios = {t: mean(c, "ours", "rmse") / mean(c, "theirs", "rmse") for t, c in part.items()}
        gains = {t: mean(c, "ours", "nll") - mean(c, "theirs", "nll") for t, c in part.items()}
        worse = ", ".join(f"{t} {r:.2f}" for t, r in ratios.items() if r > 1.02) or "none"
        value = float(np.exp(np.mean(np.log(list(ratios.values())))))
        case = f"{half}: RMSE over that of scikit-learn's exact ARD process"
        yield at_most(case, value, 1.0, "x", f"geometric mean of {len(part)} tables; worse by 2 %: {worse}")
        worse = ", ".join(f"{t} {g:+.2f}" for t, g in gains.items() if g > 0.02) or "none"
        case = f"{half}: NLL less that of scikit-learn's"
        yield at_most(case, float(np.median(list(gains.values()))), 0.0, "", f"median; worse by .02: {worse}")
        covered = {t: mean(c, "ours", "coverage") for t, c in part.items()}
        error = {
            t: float(np.std([cell["ours"]["coverage"] for cell in c], ddof=1) / np.sqrt(len(c)))
            if len(c) > 1
            else np.nan
            for t, c in part.items()
        }
        outside = ", ".join(f"{t} {c:.3f} +- {error[t]:.3f}" for t, c in covered.items() if not LEAST <= c <= MOST)
        share = float(np.mean([LEAST <= c <= MOST for c in covered.values()]))
        case = f"{half}: 95 % intervals cover .93 to .97"
        yield at_least(case, share, 1.0, "of tables", f"not: {outside or 'none'} (standard errors over splits)")
    for name, (rmse, nll) in PUBLISHED.items():
        if cells := [cell for cell in large if cell["table"] == name]:
            yield from _published_goals(name, cells, rmse, nll)


def _published_goals(name: str, cells: Sequence[Mapping[str, Any]], rmse: float, nll: float) -> Iterator[Result]:
    """Means over the published splits of a table that were measured."""
    splits = ", ".join(str(cell["split"]) for cell in cells)
    where = f"{name}, published split{'s' if len(cells) > 1 else ''} {splits}"
    found = {what: [cell["ours"][what] for cell in cells] for what in ("rmse", "nll", "coverage", "cpu_seconds")}
    mean = {what: float(np.mean(values)) for what, values in found.items()}
    said = {what: ", ".join(f"{value:.4g}" for value in values) for what, values in found.items()}
    widths = ", ".join(str(cell["width"]) for cell in cells)
    details = f"{mean['cpu_seconds']:.0f} s of CPU, {cells[0]['rows']} rows, landmarks {widths}"
    yield at_most(f"{where}: RMSE", mean["rmse"], rmse, "", f"{said['rmse']}; {details}")
    yield at_most(f"{where}: NLL", mean["nll"], nll, "", said["nll"])
    reached = LEAST <= mean["coverage"] <= MOST
    yield Result(
        f"{where}: 95 % intervals cover", mean["coverage"], "", f"{LEAST} to {MOST}", reached, said["coverage"]
    )


def _small(table: Table, number: int) -> dict[str, Any]:
    """Ours and scikit-learn's on one split of a table."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    split = table.split(number, ROWS, TEST_ROWS)
    center, unit = split.y.mean(), split.y.std() or 1.0
    y, y_test = (split.y - center) / unit, (split.y_test - center) / unit
    scale = np.where(split.X.std(axis=0) > 0, split.X.std(axis=0), 1.0)
    X, X_test = ((part - split.X.mean(axis=0)) / scale for part in (split.X, split.X_test))
    d = X.shape[1]
    exact = GaussianProcessRegressor(
        ConstantKernel() * RBF(np.full(d, np.sqrt(d))) + WhiteKernel(0.1), alpha=1e-8, random_state=number
    )
    ours = _measured(GaussianProcess(random_state=number), split.X, y, split.X_test, y_test)
    theirs = _measured(exact, X, y, X_test, y_test)  # standardised columns, without which it would be lost
    return {"table": table.name, "half": table.half, "split": number, "rows": len(X), "columns": d,
            "ours": ours, "theirs": theirs}  # fmt: skip


def _published(name: str, number: int) -> dict[str, Any]:
    """Ours on a published split."""
    data, path = load(name), in_folder(f"uci_{name}.npz")
    if path is None:
        raise FileNotFoundError(f"uci_{name}.npz, which has the published splits, is not in the folder of the data.")
    with np.load(path) as arrays:
        test = arrays["test"][number].astype(bool)
    X, y = np.asarray(data.X, np.float64), np.asarray(data.y, np.float64)
    y = (y - y[~test].mean()) / y[~test].std()
    model = GaussianProcess(random_state=0)
    ours = _measured(model, X[~test], y[~test], X[test], y[test])
    width = int(model.features_.n_features_out)
    return {"table": name, "split": number, "rows": int((~test).sum()), "columns": X.shape[1], "width": width,
            "ours": ours}  # fmt: skip


def _measured(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Numbers:
    """RMSE, NLL and coverage of new targets, whose standard deviation has the noise in it."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        ours = isinstance(model, GaussianProcess)
        mean, deviation = model.predict(X_test, return_std=True, **({"include_noise": True} if ours else {}))
    deviation = np.maximum(deviation, 1e-6)  # where scikit-learn finds no noise
    z = (y_test - mean) / deviation
    nll = float(np.mean(0.5 * z**2 + np.log(deviation) + 0.5 * np.log(2 * np.pi)))
    return {
        "rmse": float(np.sqrt(np.mean((y_test - mean) ** 2))),
        "nll": nll,
        "coverage": float(np.mean(np.abs(z) <= LEVEL)),
        "cpu_seconds": time.process_time() - begun,
    }
