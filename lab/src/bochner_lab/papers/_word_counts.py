"""Trivial rivals of language models: the frequencies of words, and of words after a word."""

from __future__ import annotations

import numpy as np


def losses_of_counts(train: np.ndarray, test: np.ndarray, n_words: int) -> dict[str, float]:
    """Mean cross-entropy in nats of a unigram and a bigram table on the words of a test text.

    Notes
    -----
    Unigrams have one count added to each word.  Bigrams are interpolated with them by Witten and Bell's rule: after a word v
    that was seen c(v) times before T(v) different words, the weight of the unigrams is T/(c + T).

    Examples
    --------
    >>> import numpy as np
    >>> found = losses_of_counts(np.array([0, 1] * 50), np.array([0, 1] * 10), 2)
    >>> found["bigram"] < found["unigram"]
    True
    """
    train, test = np.asarray(train), np.asarray(test)
    counts = np.bincount(train, minlength=n_words) + 1.0
    unigram = counts / counts.sum()
    pairs, times = np.unique(train[:-1] * n_words + train[1:], return_counts=True)
    seen = np.bincount(pairs // n_words, weights=times, minlength=n_words)
    followers = np.bincount(pairs // n_words, minlength=n_words)
    before, after = test[:-1], test[1:]
    wanted = before * n_words + after
    at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    count = np.where(pairs[at] == wanted, times[at], 0)
    total = seen[before] + followers[before]
    mixed = (count + followers[before] * unigram[after]) / np.where(total > 0, total, 1)
    bigram = np.where(total > 0, mixed, unigram[after])
    return {"unigram": float(-np.log(unigram[after]).mean()), "bigram": float(-np.log(bigram).mean())}
