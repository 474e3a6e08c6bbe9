"""What a data set is: its source, its licence, its size, whether it is here, and how to get it."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ._entries import EMBEDDED, TABLES, names
from ._load import VARIABLE, archived, files_of, in_folder

_UCI = "UCI Machine Learning Repository"
_COLLECTED = "uci_datasets of T. Evans"
_CC_BY = "CC BY 4.0"
_UNSTATED = "none stated; free for research"
SOURCES: dict[str, tuple[str, str]] = {
    "abalone": (f"{_UCI}, Abalone", _CC_BY),
    "banknote": (f"{_UCI}, Banknote Authentication", _CC_BY),
    "bike": (f"{_COLLECTED}, Bike Sharing", _CC_BY),
    "boston": ("StatLib, Boston house prices", _UNSTATED),
    "breast-cancer": (f"{_UCI}, Breast Cancer Wisconsin (Diagnostic), in scikit-learn", _CC_BY),
    "car": (f"{_UCI}, Car Evaluation", _CC_BY),
    "ccpp": (f"{_UCI}, Combined Cycle Power Plant", _CC_BY),
    "cmc": (f"{_UCI}, Contraceptive Method Choice", _CC_BY),
    "cola": ("Warstadt et al. (2019), Corpus of Linguistic Acceptability", _UNSTATED),
    "cpu_act": ("DELVE, Computer Activity", _UNSTATED),
    "diabetes": ("Efron et al. (2004), in scikit-learn", _UNSTATED),
    "digits": (f"{_UCI}, Optical Recognition of Handwritten Digits, in scikit-learn", _CC_BY),
    "elevators": (f"{_COLLECTED}, Elevators", _UNSTATED),
    "fashion-mnist-test": ("Zalando Research, Fashion-MNIST, its test part", "MIT"),
    "iris": (f"{_UCI}, Iris, in scikit-learn", _CC_BY),
    "kin40k": (f"{_COLLECTED}, Kin40k", _UNSTATED),
    "krkopt": (f"{_UCI}, Chess (King-Rook vs. King)", _CC_BY),
    "letter": (f"{_UCI}, Letter Recognition", _CC_BY),
    "leukemia": ("Golub et al. (1999), gene expressions of leukaemia", _UNSTATED),
    "machine_cpu": (f"{_UCI}, Computer Hardware", _CC_BY),
    "mnist": ("LeCun et al. (1998), MNIST", "CC BY-SA 3.0"),
    "nursery": (f"{_UCI}, Nursery", _CC_BY),
    "parkinsons": (f"{_UCI}, Parkinsons Telemonitoring", _CC_BY),
    "pol": (f"{_COLLECTED}, Pole Telecommunications", _UNSTATED),
    "protein": (f"{_COLLECTED}, Physicochemical Properties of Protein Tertiary Structure", _CC_BY),
    "spoken-digits": ("Jackson et al., Free Spoken Digit Dataset", "CC BY-SA 4.0"),
    "usps": ("Hull (1994), digits of the U.S. Postal Service", _UNSTATED),
    "wifi": (f"{_UCI}, Wireless Indoor Localization", _CC_BY),
    "wikitext-2": ("Merity et al. (2017), WikiText-2", "CC BY-SA"),
    "wine": (f"{_UCI}, Wine, in scikit-learn", _CC_BY),
    "wine-quality-red": (f"{_UCI}, Wine Quality", _CC_BY),
    "wine-quality-white": (f"{_UCI}, Wine Quality", _CC_BY),
    "yeast": (f"{_UCI}, Yeast", _CC_BY),
}

_SIZES = {"cola": "9,594 sentences", "spoken-digits": "3,000 clips", "wikitext-2": "2.5 million tokens"}
"""Size of each data set that is not a table."""


@dataclass(frozen=True)
class Facts:
    """A data set as `bochner-lab data` shows it.

    Attributes
    ----------
    name : str
    source, licence : str
        Who published it, and under which terms.
    size : str
        Rows and columns, or what else says how large it is.
    here : bool
        Whether `load` finds it without a network.
    how : str
        How to get it.
    """

    name: str
    source: str
    licence: str
    size: str
    here: bool
    how: str


def facts() -> dict[str, Facts]:
    """Every data set that `load` knows, by name.

    Examples
    --------
    >>> from bochner_lab.datasets import facts
    >>> facts()["digits"].here
    True
    """
    return {name: _facts_of(name) for name in names()}


def _facts_of(name: str) -> Facts:
    source, licence = SOURCES[name]
    if name in EMBEDDED:
        return Facts(name, source, licence, "embedded", True, "part of scikit-learn")
    files = files_of(name)
    here = all(in_folder(file) is not None for file in files)
    if name in _SIZES:
        return Facts(name, source, licence, _SIZES[name], here, _by_hand(files))
    rows, columns = TABLES[name].shape
    fetched = f"bochner-lab data fetch {name} (from OpenML)"
    how = fetched if TABLES[name].openml else _by_hand(files)
    return Facts(name, source, licence, f"{rows} x {columns}", here, how)


def _by_hand(files: tuple[str, ...]) -> str:
    return f"from its source, as {', '.join(files)} in the folder {VARIABLE}"


def fetch(name: str, folder: Path | None = None) -> Path:
    """Download a data set from OpenML into a folder, so that `load` reads it there.

    Parameters
    ----------
    name : str
        One of `names()`.
    folder : Path, optional
        By default the folder that the environment variable ``BOCHNER_DATA`` gives.

    Returns
    -------
    Path
        The file.
    """
    if name not in SOURCES:
        raise ValueError(f"data fetch: unknown data set {name!r}; the names are {', '.join(names())}.")
    entry = TABLES.get(name)
    if entry is None or entry.openml is None:
        raise ValueError(f"data fetch: {name} cannot be downloaded; get it so: {_facts_of(name).how}.")
    if folder is None:
        if not os.environ.get(VARIABLE):
            raise ValueError(f"data fetch: give --to FOLDER, or set {VARIABLE} to the folder of the data sets.")
        folder = Path(os.environ[VARIABLE])
    columns, target = archived(name, entry)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / entry.file
    partial = path.with_name(f".{path.name}.part")
    try:
        if path.suffix == ".npz":
            X = np.stack([np.asarray(column, np.float64) for column in columns.values()], axis=1)
            with partial.open("wb") as file:
                np.savez_compressed(file, X=X * entry.divide, y=np.asarray(target, np.float64), names=list(columns))
        else:
            with gzip.open(partial, "wt", newline="", encoding="utf-8") as text:
                _write_csv(text, {**columns, entry.target or "target": target})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _write_csv(text: IO[str], columns: dict[str, np.ndarray]) -> None:
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
