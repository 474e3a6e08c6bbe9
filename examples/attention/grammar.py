"""Sentences of a small random grammar: text for the language model where there is no corpus."""

from __future__ import annotations

import random

NOUNS = "bird river child stone teacher wind garden letter ship window story road tree lamp song field".split()
VERBS = "sees follows finds keeps leaves meets hears paints carries knows turns holds".split()
ADJECTIVES = "old small quiet bright heavy green slow kind".split()
PLACES = "near under behind above beside".split()


def sentences(count: int, seed: int) -> str:
    """That many sentences, tokens separated by spaces; nouns are followed by verbs of their own more often than not."""
    rng = random.Random(seed)
    return " ".join(_sentence(rng) for _ in range(count))


def _sentence(rng: random.Random) -> str:
    subject, thing = rng.choice(NOUNS), rng.choice(NOUNS)
    liked = VERBS[NOUNS.index(subject) % len(VERBS)]
    verb = liked if rng.random() < 0.7 else rng.choice(VERBS)
    words = ["the", *_described(subject, rng), verb, "the", *_described(thing, rng)]
    if rng.random() < 0.4:
        words += [rng.choice(PLACES), "the", subject]  # a long-range dependence to be found by attention
    return " ".join([*words, "."])


def _described(noun: str, rng: random.Random) -> list[str]:
    return [rng.choice(ADJECTIVES), noun] if rng.random() < 0.3 else [noun]
