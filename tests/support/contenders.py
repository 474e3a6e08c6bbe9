"""Contenders of a race that cost nothing, or as much as a clock of their own says."""

from __future__ import annotations

import numpy as np

from bochner.selection._contenders import Contender, Outcome


class Guess(Contender):
    """Predicts targets with noise, and keeps what it was given."""

    def __init__(self, label, noise, spec=None):
        self.label, self.noise, self.spec, self.seen = label, noise, spec, []
        self.rng = np.random.default_rng(list(label.encode()))

    def judge(self, part, task, seed, shared):
        self.seen.append(part)
        place = dict(zip(task.X[:, 0], range(len(task.X)), strict=True))
        rows = [place[x] for x in part.X_test[:, 0]]
        noise = self.noise * self.rng.standard_normal((len(rows), 1))
        return Outcome(task.T[rows] + noise, {"alpha": 1.0}, 0.1, 1e-6)

    def work(self, n, d, t):
        return n


class Clock:
    """Stands for the module `time`, so that what a budget allows does not depend on the machine."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


class Slow(Guess):
    """Takes some seconds per row and fit of a clock, in several fits, before each of which it asks for time."""

    def __init__(self, clock, seconds, *arguments, fits=5, power=1.0):
        super().__init__(*arguments)
        self.clock, self.seconds, self.fits, self.power = clock, seconds, fits, power

    def judge(self, part, task, seed, shared):
        for _ in range(self.fits):
            shared.check()
            self.clock.now += self.seconds * len(part.X) ** self.power
        if self.spec is not None:
            shared.known[self.spec.map] = "found"
        outcome = super().judge(part, task, seed, shared)
        return outcome._replace(fit_seconds=self.seconds * len(part.X) ** self.power)

    def work(self, n, d, t):
        return n**self.power
