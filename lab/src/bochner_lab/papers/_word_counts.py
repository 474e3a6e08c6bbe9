"""Trivial rivals of language models: the frequencies of words, and of words after a word."""

from __future__ import annotations

import numpy as np


def bigram_table(train: np.ndarray, n_words: int) -> np.ndarray:
    """Probabilities (word, next word) from counts of a training text.

    Notes
    -----
    Unigrams have one count added to each word.  Bigrams are interpolated with them by Witten and Bell's rule: after a word v
    that was seen c(v) times before T(v) different words, the weight of the unigrams is T/(c + T).
    """
    train = np.asarray(train)
    times = np.bincount(train[:-1] * n_words + train[1:], minlength=n_words**2).reshape(n_words, n_words)
    followers, seen = (times > 0).sum(axis=1, keepdims=True), times.sum(axis=1, keepdims=True)
    mixed = (times + np.maximum(followers, 1) * _unigrams(train, n_words)) / (seen + np.maximum(followers, 1))
    return np.asarray(mixed)


def losses_of_counts(train: np.ndarray, test: np.ndarray, n_words: int) -> dict[str, float]:
    """Mean cross-entropy in nats of a unigram and a bigram table on the words of a test text.

    Examples
    --------
    >>> import numpy as np
    >>> found = losses_of_counts(np.array([0, 1] * 50), np.array([0, 1] * 10), 2)
    >>> found["bigram"] < found["unigram"]
    True
    """
    train, test = np.asarray(train), np.asarray(test)
    unigram, bigram = _unigrams(train, n_words), bigram_table(train, n_words)
    return {
        "unigram": float(-np.log(unigram[test[1:]]).mean()),
        "bigram": float(-np.log(bigram[test[:-1], test[1:]]).mean()),
    }


def _unigrams(train: np.ndarray, n_words: int) -> np.ndarray:
    counts = np.bincount(train, minlength=n_words) + 1.0
    return np.asarray(counts / counts.sum())
