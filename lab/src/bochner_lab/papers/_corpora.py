"""WikiText-2 as classes: its most frequent words, or pieces of words that join the most frequent pairs of neighbours."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from .._experiment import dataset

UNKNOWN, END = "<unk>", "<eos>"
RARE = 50
"""A character that is less frequent than this is unknown."""


@dataclass(frozen=True)
class Corpus:
    """Numbers of classes, in the order in which they first appear in the training text.

    Attributes
    ----------
    train, valid : ndarray of int64
    n_classes : int
    """

    train: np.ndarray
    valid: np.ndarray
    n_classes: int


@functools.lru_cache(maxsize=1)
def pieces(n_classes: int, characters: int | None = None) -> Corpus:
    """WikiText-2 in at most so many pieces, the ends of lines among them; only its beginning if so asked."""
    train, valid = _texts(characters)
    spelt = spelling(Counter(train), set(valid), n_classes)
    number: dict[str, int] = {}
    for word in dict.fromkeys(train):
        for piece in spelt[word]:
            number.setdefault(piece, len(number))
    unknown = number.setdefault(UNKNOWN, len(number))
    tokens = [
        np.array([number.get(piece, unknown) for word in words for piece in spelt[word]]) for words in (train, valid)
    ]
    return Corpus(tokens[0], tokens[1], len(number))


def _texts(characters: int | None) -> list[list[str]]:
    text = dataset("wikitext-2")
    return [part[:characters].replace("\n", f" {END} ").split() for part in (text.train, text.valid)]


def spelling(counts: Mapping[str, int], others: Iterable[str], n_pieces: int) -> dict[str, list[str]]:
    """Pieces of every word of ``counts``, and of ``others``, which do not influence what the pieces are.

    Byte-pair encoding (Sennrich et al., 2016) on characters.  The first piece of a word
    starts with an underscore, so that a text of pieces can be read as words again.

    Examples
    --------
    >>> spelling({"low": 90, "lower": 60}, ["slow"], 8)["lower"]
    ['_low', 'e', 'r']
    """
    letters: Counter[str] = Counter()
    for word, count in counts.items():
        letters.update({letter: count * k for letter, k in Counter(_letters(word)).items()})
    common = {letter for letter, count in letters.items() if count >= RARE}
    spelt = {word: [c if c in common else UNKNOWN for c in _letters(word)] for word in (*counts, *others)}
    times, where = Counter[tuple[str, str]](), defaultdict[tuple[str, str], set[str]](set)

    def count_pairs(word: str, sign: int) -> None:
        for pair in zip(spelt[word], spelt[word][1:], strict=False):
            times[pair] += sign * counts.get(word, 0)
            where[pair].add(word)

    for word in spelt:
        count_pairs(word, 1)
    for _ in range(n_pieces - len(common) - 1):
        pair = max(times, key=lambda found: (times[found], found), default=None)
        if pair is None or not times[pair]:
            break
        for word in where.pop(pair):
            count_pairs(word, -1)
            spelt[word] = _joined(spelt[word], pair)
            count_pairs(word, 1)
        del times[pair]
    return spelt


def _letters(word: str) -> list[str]:
    return [word] if word in (UNKNOWN, END) else ["_" + word[0], *word[1:]]


def _joined(spelt: list[str], pair: tuple[str, str]) -> list[str]:
    """A spelling in which neighbours that are the pair are one piece."""
    found, k = [], 0
    while k < len(spelt):
        both = tuple(spelt[k : k + 2]) == pair
        found.append("".join(pair) if both else spelt[k])
        k += 2 if both else 1
    return found
