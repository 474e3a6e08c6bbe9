"""A small causal language model on a slice of WikiText-2, with softmax attention and with random features.

Without WikiText-2 in the folder that BOCHNER_DATA names, sentences of a small random grammar take its place.

    python examples/attention/language_model.py --attention all --profile smoke
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

from comparison import Profile, command_line, compare
from grammar import sentences

from bochner.experiments._transformers import LanguageModel, Shape, Words


@dataclass(frozen=True)
class TextProfile(Profile):
    """How much text, too."""

    length: int
    vocabulary: int
    train_words: int
    test_words: int


PROFILES = {
    "smoke": TextProfile(
        steps=80,
        batch=16,
        shape=Shape(width=32, layers=2, heads=2),
        n_projections=32,
        length=32,
        vocabulary=500,
        train_words=20_000,
        test_words=2_000,
    ),
    "full": TextProfile(
        steps=250,
        batch=8,
        shape=Shape(width=96, layers=2, heads=4),
        n_projections=96,
        length=128,
        vocabulary=2_000,
        train_words=300_000,
        test_words=10_000,
    ),
}


def text(profile: TextProfile, seed: int) -> Words:
    """The words that there are."""
    sizes, parts = (profile.train_words, profile.test_words), (profile.vocabulary, profile.length, profile.batch, seed)
    if os.environ.get("BOCHNER_DATA"):
        words = Words.wikitext(*sizes, *parts)
        words.data = f"WikiText-2, {words.data}"
    else:
        words = Words(*(sentences(n, seed + k).split()[:n] for k, n in enumerate(sizes)), *parts)
        words.data = f"sentences of a random grammar (BOCHNER_DATA is not set), {words.data}"
    return words


def main(arguments: argparse.Namespace) -> None:
    """Compare on the text that there is."""
    profile = PROFILES[arguments.profile]
    words = text(profile, arguments.seed)
    compare(LanguageModel(words.n_words, profile.length, profile.shape, arguments.seed), words, profile, arguments)


if __name__ == "__main__":
    main(command_line(__doc__))
