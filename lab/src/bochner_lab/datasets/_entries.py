"""Data sets: their type, the known names, where each is found, and how its file is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Dataset:
    """A matrix of points with a target.

    Attributes
    ----------
    name : str
        Name of the data set.
    X : float array (n, d)
        Points as rows, not scaled.
    y : array (n,)
        Target: numbers, or class labels 0, 1, 2, ...
    feature_names : tuple of str
        Names of the columns.
    source : str
        Where the data came from: "embedded", a file, or "download".
    n_train : int, optional
        Number of leading rows for training, if the data come with a split.
    """

    name: str
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    source: str
    n_train: int | None = None


@dataclass(frozen=True)
class Text:
    """A corpus in three parts, with tokens separated by spaces.

    Attributes
    ----------
    name : str
        Name of the corpus.
    train, valid, test : str
        The three parts.
    source : str
        Where the corpus came from.
    """

    name: str
    train: str = field(repr=False)
    valid: str = field(repr=False)
    test: str = field(repr=False)
    source: str


@dataclass(frozen=True)
class Recordings:
    """Recorded words, one after the other.

    Attributes
    ----------
    name : str
        Name of the data set.
    samples : int16 array (n,)
        Sound of all recordings, 8000 samples in a second.
    lengths : int array (k,)
        Samples of each recording.
    digit, speaker, take : arrays (k,)
        What was said, by whom, and for which time.
    source : str
        Where the recordings came from.
    """

    name: str
    samples: np.ndarray = field(repr=False)
    lengths: np.ndarray = field(repr=False)
    digit: np.ndarray = field(repr=False)
    speaker: np.ndarray = field(repr=False)
    take: np.ndarray = field(repr=False)
    source: str


@dataclass(frozen=True)
class Sentences:
    """Sentences with a judgement, in three parts.

    Attributes
    ----------
    name : str
        Name of the data set.
    train, valid, other : tuple of (str, bool)
        Sentences and whether they are acceptable: of the same sources, and of other sources than those trained on.
    source : str
        Where they came from.
    """

    name: str
    train: tuple[tuple[str, bool], ...] = field(repr=False)
    valid: tuple[tuple[str, bool], ...] = field(repr=False)
    other: tuple[tuple[str, bool], ...] = field(repr=False)
    source: str


@dataclass(frozen=True)
class Entry:
    """Where one data set is found: its file in the local folder, its shape, and its name in the public archive OpenML.

    ``target`` is the target column of a CSV file (the last by default), ``drop`` are the columns to leave out,
    ``n_train`` is the length of the training split, and integers are divided by ``divide``.
    """

    file: str
    shape: tuple[int, int]
    openml: str | None = None
    target: str | None = None
    drop: tuple[str, ...] = ()
    n_train: int | None = None
    divide: float = 1.0


EMBEDDED = ("breast-cancer", "diabetes", "digits", "iris", "wine")

TABLES: dict[str, Entry] = {
    "abalone": Entry("abalone.csv.gz", (4177, 8), "abalone"),
    "banknote": Entry("banknote.npz", (1372, 4), "banknote-authentication"),
    "bike": Entry("uci_bike.npz", (17379, 17)),
    "boston": Entry("boston.npz", (506, 13), "boston"),
    "car": Entry("car.csv.gz", (1728, 6), "car"),
    "ccpp": Entry("ccpp.npz", (9568, 4)),
    "cmc": Entry("cmc.csv.gz", (1473, 9), "cmc"),
    "cpu_act": Entry("cpu_act.npz", (8192, 21), "cpu_act"),
    "elevators": Entry("uci_elevators.npz", (16599, 18)),
    "fashion-mnist-test": Entry("fashion_mnist_test10k.npz", (10000, 784)),
    "kin40k": Entry("uci_kin40k.npz", (40000, 8)),
    "krkopt": Entry("krkopt.csv.gz", (28056, 6), "kropt"),
    "letter": Entry("letter.npz", (20000, 16), "letter", n_train=16000),
    "leukemia": Entry("leukemia_golub.npz", (72, 7129), n_train=38),
    "machine_cpu": Entry("machine_cpu.csv.gz", (209, 6), "machine_cpu", "PRP", ("vendor", "model", "ERP")),
    "mnist": Entry("mnist.npz", (70000, 784), "mnist_784", n_train=60000),
    "nursery": Entry("nursery.csv.gz", (12960, 8), "nursery"),
    "parkinsons": Entry(
        "parkinsons_telemonitoring.csv.gz", (5875, 19), None, "total_UPDRS", ("subject#", "motor_UPDRS")
    ),
    "pol": Entry("uci_pol.npz", (15000, 26)),
    "protein": Entry("uci_protein.npz", (45730, 9)),
    "usps": Entry("usps.npz", (9298, 256), "USPS", divide=1000.0),
    "wifi": Entry("wifi_localization.npz", (2000, 7)),
    "wine-quality-red": Entry("winequality_red.npz", (1599, 11), "wine-quality-red"),
    "wine-quality-white": Entry("winequality_white.npz", (4898, 11), "wine-quality-white"),
    "yeast": Entry("yeast.csv.gz", (1484, 8), "yeast", drop=("seq",)),
}

TEXTS: dict[str, tuple[str, ...]] = {
    "cola": tuple(f"cola.{part}.tsv.xz" for part in ("in_domain_train", "in_domain_dev", "out_of_domain_dev")),
    "wikitext-2": tuple(f"wikitext-2.{part}.txt.xz" for part in ("train", "valid", "test")),
}
"""Files of the three parts of data sets of text."""

RECORDINGS: dict[str, str] = {"spoken-digits": "spoken_digits.npz"}

LEVELS: tuple[tuple[str, ...], ...] = (
    ("vhigh", "high", "med", "low"),
    ("low", "med", "high"),
    ("small", "med", "big"),
    ("2", "3", "4", "5more"),
    ("2", "4", "more"),
    ("1", "2", "3", "more"),
    ("usual", "pretentious", "great_pret"),
    ("proper", "less_proper", "improper", "critical", "very_crit"),
    ("complete", "completed", "incomplete", "foster"),
    ("convenient", "less_conv", "critical"),
    ("convenient", "inconv"),
    ("nonprob", "slightly_prob", "problematic"),
    ("recommended", "priority", "not_recom"),
    ("unacc", "acc", "good", "vgood"),
    ("not_recom", "recommend", "very_recom", "priority", "spec_prior"),
)
"""Ordered levels of categorical columns; other categorical columns are coded in alphabetical order."""


def names() -> tuple[str, ...]:
    """Return the names that `load` accepts.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from bochner_lab import datasets
    >>> "digits" in datasets.names()
    True
    """
    return tuple(sorted((*EMBEDDED, *TABLES, *TEXTS, *RECORDINGS)))
