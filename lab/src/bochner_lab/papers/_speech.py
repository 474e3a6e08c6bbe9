"""Conformers on connected digits, one for each mechanism and seed: training, and what experiments read from it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import Approximation, mechanism
from bochner.kernels import Softmax
from bochner.maps import AngularHybrid, ClusterHybrid

from .._estimates import Estimate
from .._experiment import PowerCheck, Results
from .._verdicts import Finding, superior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOFTMAX, NONE = "softmax", "no attention"
CONSTANT = "one digit for all"
RIVALS = (NONE, CONSTANT)
"""What softmax attention must beat."""
TRAINING = {"rate": 3e-3, "digits": (3, 5), "noise": 1.0, "stride": 4, "kernel": 3}
"""Largest learning rate, digits of a string, noise, frames of a position, positions of a convolution."""
SMOKE = TRAINING | {"seeds": 2, "shape": (16, 1, 1), "batch": 2, "test": 10, "steps": 3, "refit": 2}
FULL = TRAINING | {"seeds": 6, "shape": (32, 2, 2), "batch": 12, "test": 300, "steps": 400, "refit": 50}
DEVIATIONS = (
    "Strings of 3 to 5 recorded digits of one speaker, with noise (Free Spoken Digit Dataset; takes 0 to 4 are the test; "
    "recordings beyond 0.64 s are left out), and an encoder of two Conformer blocks of width 32 with connectionist temporal "
    "classification, in place of LibriSpeech and an encoder of 17 blocks of width 512 in a transducer. Rotary positions. "
    "The noise, the short convolutions (3 positions) and the size were chosen in trials with other seeds so that softmax "
    "attention has clearly fewer errors than none."
)


def seeds(p: Mapping[str, Any]) -> list[str]:
    """One part for each seed: of initial weights, strings and draws."""
    return [f"seed {k}" for k in range(p["seeds"])]


def named(name: str, rows: int) -> Approximation:
    """Features of softmax of a mechanism."""
    return mechanism(name, n_projections=rows)


def angular(rows: int, signs: int) -> Approximation:
    """The angular hybrid with m rows and n signs."""
    return Approximation(Softmax(), AngularHybrid(signs), n_projections=rows)


def clustered(rows: int, queries: int, keys: int) -> Approximation:
    """The cluster hybrid with zero-one weights and complex diagonals."""
    return Approximation(Softmax(), ClusterHybrid(queries, keys), n_projections=rows)


def error_rates(kinds: Mapping[str, Approximation | str], p: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Word error rates in percent after training, by the name of the kind; all start from the same weights."""
    import torch

    from ._conformer import Conformer, fit_again
    from ._spoken_digits import BANDS, SpokenDigits
    from ._transformers import Shape, train

    task = SpokenDigits(p["digits"], p["noise"], p["stride"], p["batch"], p["test"], seed)
    found = {}
    for name, kind in kinds.items():
        model = Conformer(BANDS, p["stride"], 11, Shape(*p["shape"]), p["kernel"], kind, seed, p.get("unit"))
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")  # large errors of few features are what is measured
            for done in train(model, task, p["steps"], p["rate"]):
                if done % p["refit"] == 0:
                    fit_again(model)
            with torch.no_grad():
                task.loss(model, p["steps"])  # constants are chosen from strings for training
            found[name] = 100 * task.evaluate(model)
    return found | {CONSTANT: 100 * task.constant()}


def rates(results: Results, name: str) -> np.ndarray:
    """Word error rates in percent, of each seed."""
    return np.array([part[name] for part in results.parts.values()])


def lower(results: Results, new: str, old: str) -> Finding:
    """Whether the first has a lower word error rate than the second, paired by seed."""
    gain = Estimate.of(rates(results, old) - rates(results, new))
    text = (
        f"{new} {rates(results, new).mean():.2f} %, {old} {rates(results, old).mean():.2f} %: "
        f"{gain.mean:+.2f} +- {gain.error:.2f} lower."
    )
    return superior(gain, text)


def power_of_speech(results: Results) -> PowerCheck:
    """Judge whether softmax attention lowers the errors of models whose attention cannot choose (95 % intervals)."""
    names = list(next(iter(results.parts.values())))
    rows = tuple((name, float(rates(results, name).mean())) for name in names)
    passed = all(lower(results, SOFTMAX, name).holds is True for name in RIVALS)
    means = dict(rows)
    worst = max((value, name) for name, value in rows if name not in RIVALS)
    return PowerCheck(
        passed,
        f"Softmax attention has a word error rate of {means[SOFTMAX]:.1f} %; "
        + ", ".join(f"{name} {means[name]:.1f} %" for name in RIVALS)
        + f"; the worst mechanism is {worst[1]} ({worst[0]:.1f} %).",
        rows,
    )


def bars(results: Results, ax: Axes) -> None:
    """Word error rates of all models, with two standard errors."""
    names = list(next(iter(results.parts.values())))
    values = [Estimate.of(rates(results, name)) for name in names]
    ax.barh(names, [float(v.mean) for v in values], xerr=[2 * float(v.error) for v in values], color="C0", alpha=0.7)
    ax.invert_yaxis()
    ax.set(xlabel="word error rate (%)")
