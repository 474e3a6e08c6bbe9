"""Data sets by name."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import numpy as np
import pytest

from bochner_lab import datasets
from bochner_lab.datasets import _entries, _load

FOLDER = os.environ.get("BOCHNER_DATA")


@pytest.mark.parametrize("name", _entries.EMBEDDED)
def test_embedded(name):
    data = datasets.load(name)
    assert data.X.dtype == np.float64 and data.X.shape == (len(data.y), len(data.feature_names))
    assert np.isfinite(data.X).all() and data.source == "embedded"


@pytest.mark.parametrize("name", _entries.TABLES)
def test_files_of_the_folder(name):
    entry = _entries.TABLES[name]
    if FOLDER is None or not (Path(FOLDER) / entry.file).exists():
        pytest.skip(f"BOCHNER_DATA has no {entry.file}")
    data = datasets.load(name)
    assert data.X.shape == entry.shape and data.X.dtype == np.float32 and np.isfinite(data.X).all()
    assert len(data.y) == len(data.X) and np.isfinite(data.y).all() and len(data.feature_names) == entry.shape[1]


def test_words_become_codes_in_their_order(tmp_path, monkeypatch):
    import gzip

    rows = ["vhigh,med,2,4,big,low,unacc", "low,vhigh,5more,more,small,high,vgood"] * 864
    with gzip.open(tmp_path / "car.csv.gz", "wt") as file:
        file.write("\n".join(["Buying,Maint,Doors,Persons,Lug_boot,Safety,Acceptability", *rows]))
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    data = datasets.load("car")
    np.testing.assert_array_equal(data.X[:2], [[0, 2, 0, 1, 2, 0], [3, 0, 3, 2, 0, 2]])
    np.testing.assert_array_equal(data.y[:2], [0, 3])
    assert data.feature_names[0] == "Buying" and data.source == "car.csv.gz"


def test_text(tmp_path, monkeypatch):
    for part in ("train", "valid", "test"):
        with lzma.open(tmp_path / f"wikitext-2.{part}.txt.xz", "wt") as file:
            file.write(f"a {part} text")
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    assert datasets.load("wikitext-2").valid == "a valid text"


def test_judged_sentences(tmp_path, monkeypatch):
    for k, file in enumerate(_entries.TEXTS["cola"]):
        with lzma.open(tmp_path / file, "wt") as text:
            text.write(f"gj04\t{k % 2}\t*\tSentence {k}.\ngj04\t1\t\tAnother.\n")
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    found = datasets.load("cola")
    assert found.train == (("Sentence 0.", False), ("Another.", True))
    assert found.valid[0] == ("Sentence 1.", True) and found.other[0] == ("Sentence 2.", False)


def test_recordings(tmp_path, monkeypatch):
    arrays = {"samples": np.arange(5, dtype=np.int16), "lengths": np.array([2, 3]), "digit": np.array([7, 1])}
    arrays |= {"speaker": np.array(["a", "b"]), "take": np.array([0, 4])}
    np.savez(tmp_path / "spoken_digits.npz", **arrays)
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    found = datasets.load("spoken-digits")
    assert found.source == "spoken_digits.npz" and found.digit.tolist() == [7, 1] and len(found.samples) == 5
    np.savez(tmp_path / "spoken_digits.npz", **arrays | {"lengths": np.array([2, 2])})
    with pytest.raises(ValueError, match=r"recordings of spoken_digits.npz do not add up to its samples"):
        datasets.load("spoken-digits")
    monkeypatch.delenv(_load.VARIABLE)
    with pytest.raises(
        FileNotFoundError, match=r"'spoken-digits' needs spoken_digits.npz, and BOCHNER_DATA is not set"
    ):
        datasets.load("spoken-digits")


def test_a_file_of_the_wrong_shape_is_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "letter.npz", X=np.zeros((3, 2)), y=np.zeros(3))
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match=r"letter.npz holds a matrix of shape \(3, 2\), not \(20000, 16\)"):
        datasets.load("letter")


def test_unknown_and_absent(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"unknown data set 'mnst'; the names are .*mnist"):
        datasets.load("mnst")
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"'ccpp' needs ccpp.npz, and the folder .* has no such file; set"):
        datasets.load("ccpp")
    monkeypatch.delenv(_load.VARIABLE)
    with pytest.raises(FileNotFoundError, match=r"wikitext-2.train.txt.xz and .* BOCHNER_DATA is not set"):
        datasets.load("wikitext-2")


def test_a_failed_download_is_explained(monkeypatch):
    def fail(*args, **options):
        raise OSError("no route to host")

    monkeypatch.delenv(_load.VARIABLE, raising=False)
    monkeypatch.setattr(_load, "_download", fail)
    with pytest.raises(FileNotFoundError, match=r"'letter' needs letter.npz.*The download failed: no route to host"):
        datasets.load("letter")


def test_downloads_are_decoded(monkeypatch):
    import pandas as pd
    from sklearn.utils import Bunch

    frame = pd.DataFrame({"a": np.arange(1473.0), **{f"c{k}": ["x", "y", "x"] * 491 for k in range(8)}})
    monkeypatch.delenv(_load.VARIABLE, raising=False)
    monkeypatch.setattr(
        "sklearn.datasets.fetch_openml", lambda **options: Bunch(data=frame, target=pd.Series(["p", "q", "q"] * 491))
    )
    data = datasets.load("cmc")
    np.testing.assert_array_equal(data.X[:3, :2], [[0, 0], [1, 1], [2, 0]])
    np.testing.assert_array_equal(data.y[:3], [0, 1, 1])
    assert data.source == "download"
