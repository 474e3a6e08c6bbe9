"""Classes of text: paragraphs of WikiText-2 as TF-IDF, and the article that each is from, against logistic regression."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bochner.learn import KernelClassifier

from ..datasets import load
from ._bench import Result, at_most, kept_cell

SPLITS, ROWS, ARTICLES, WORDS = 5, 600, 40, 40
"""Draws of articles, paragraphs that learn, articles, and fewest words of a paragraph."""
PARAGRAPHS = ROWS // ARTICLES + 9
"""Fewest paragraphs of an article: all but those that learn judge."""
CLASSES_BEHIND = 1.0
"""Goal: wrong classes over those of logistic regression."""


def run(names: Sequence[str] = (), folder: Path | None = None) -> Iterator[Result]:
    """Measure what the folder does not have yet, and tell all of it.

    Parameters
    ----------
    names : sequence of str
        Numbers of splits, such as "0"; all by default.
    folder : Path, optional
        Of the files; without one nothing is kept.
    """
    splits = [k for k in range(SPLITS) if not names or str(k) in names]
    yield from goals([kept_cell(folder, f"articles-{k}", partial(_split, k)) for k in splits])


def saved(folder: Path) -> list[dict[str, Any]]:
    """Cells in a folder."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("articles-*.json"))]


def goals(cells: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """One line of the mean errors, paired over splits."""
    if not cells:
        return
    ours, theirs = (np.array([cell[who]["error"] for cell in cells]) for who in ("ours", "theirs"))
    spread = float((ours - theirs).std(ddof=1) / np.sqrt(len(cells))) if len(cells) > 1 else float("nan")
    seconds = [float(np.mean([cell[who]["cpu_seconds"] for cell in cells])) for who in ("ours", "theirs")]
    rows, columns = cells[0]["rows"], int(np.mean([cell["columns"] for cell in cells]))
    yield at_most(
        f"{ARTICLES} articles, TF-IDF of {rows} x {columns}: wrong classes over LogisticRegression's",
        float(ours.mean() / theirs.mean()),
        CLASSES_BEHIND,
        "x",
        f"{ours.mean():.4f} and {theirs.mean():.4f}, difference {(ours - theirs).mean():+.4f} +- {spread:.4f} over "
        f"{len(cells)} splits; {seconds[0]:.1f} and {seconds[1]:.1f} s of CPU",
    )


def _split(number: int) -> dict[str, Any]:
    """Articles drawn at random, and of each as many paragraphs that learn; everything is left open on our side."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(number)
    found = [paragraphs for paragraphs in _articles() if len(paragraphs) >= PARAGRAPHS]
    learned: list[str] = []
    judged: list[tuple[str, int]] = []
    for k, which in enumerate(rng.choice(len(found), ARTICLES, replace=False)):
        order = rng.permutation(len(found[which]))
        texts = [found[which][i] for i in order]
        learned += texts[: ROWS // ARTICLES]
        judged += [(text, k) for text in texts[ROWS // ARTICLES :]]
    y, z = np.repeat(np.arange(ARTICLES), ROWS // ARTICLES), np.array([k for _, k in judged])
    words = TfidfVectorizer(sublinear_tf=True)
    X = words.fit_transform(learned)
    T = words.transform([text for text, _ in judged])
    both = {"ours": KernelClassifier(random_state=0), "theirs": LogisticRegression(max_iter=1000)}
    cell: dict[str, Any] = {"split": number, "rows": X.shape[0], "columns": X.shape[1], "judged": T.shape[0]}
    for who, model in both.items():
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            error = float((model.fit(X, y).predict(T) != z).mean())
        cell[who] = {"error": error, "cpu_seconds": time.process_time() - begun}
    return cell | {"chosen": both["ours"].selection_.reason}


def _articles() -> list[list[str]]:
    """Long paragraphs of each article of the training part."""
    text = load("wikitext-2").train
    return [
        [line for line in body.split("\n") if len(line.split()) >= WORDS and not line.lstrip().startswith("=")]
        for body in re.split(r"\n = [^=\n]+ = \n", text)
    ]
