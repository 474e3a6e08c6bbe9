"""How numbers decide a statement, and statements a verdict: holds, holds in part, does not hold, undecided.

A statement of superiority needs the confidence interval of the difference on its side; one of equality needs the interval
inside a margin that the statement names.  If the interval contradicts the statement, it does not hold; if it does neither,
the statement is undecided.  So noise can make a statement undecided, but neither true nor false.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from ._estimates import Estimate, share

HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "does not hold", "undecided"
CANNOT_RUN = "cannot be run here"
VERDICTS = (HOLDS, IN_PART, FAILS, UNDECIDED, CANNOT_RUN)
LEVEL = 0.95
POWER = 0.8
"""The smallest effect of a finding is the one that would be seen with this probability."""


@dataclass(frozen=True)
class Finding:
    """What the numbers say about one statement.

    Attributes
    ----------
    holds : bool or None
        None if the numbers do not decide it.
    evidence : str
        The numbers, in words.
    smallest : float, optional
        The smallest effect that this set-up would have seen with a probability of 0.8, in the unit of the evidence; None for
        what is counted or computed and not estimated.
    needed : float, optional
        If it is undecided: how many times as many samples would decide it with a probability of 0.8, should the true
        differences be those that were seen.
    """

    holds: bool | None
    evidence: str
    smallest: float | None = None
    needed: float | None = None


def superior(gain: Estimate, evidence: str, *, least: float = 0.0) -> Finding:
    """Judge that a gain is above ``least``, at every point where there are several.

    It holds if every interval is above, and does not hold if one is below, for all points at once.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner_lab import Estimate, superior
    >>> [superior(Estimate(np.array(mean), np.array(1.0)), "").holds for mean in (5.0, -5.0, 1.0)]
    [True, False, None]
    """
    low, _ = interval(gain)
    _, high = interval(gain, points=gain.mean.size)
    smallest = smallest_effect(gain) if np.any(gain.error) else None  # closed forms are not estimated
    holds = _decided((low > least).all(), (high < least).any())
    return Finding(holds, evidence, smallest, _needed(holds, gain, gain.mean - least, gain.mean.size, 1))


def superior_somewhere(gain: Estimate, evidence: str) -> Finding:
    """Judge that a gain is positive at one point at least; the level is divided by their number."""
    low, high = interval(gain, points=gain.mean.size)
    holds = _decided((low > 0).any(), (high < 0).all())
    return Finding(holds, evidence, smallest_effect(gain), _needed(holds, gain, gain.mean, 1, gain.mean.size))


def mostly_superior(gain: Estimate, evidence: str, *, share: float = 0.5) -> Finding:
    """Judge that a gain is positive at more than a share of the points; those that are undecided count for neither side."""
    low, high = interval(gain)
    n = gain.mean.size
    holds = _decided((low > 0).sum() > share * n, (high < 0).sum() >= (1 - share) * n)
    enough = (math.floor(share * n) + 1, math.ceil((1 - share) * n))
    return Finding(holds, evidence, smallest_effect(gain), _needed(holds, gain, gain.mean, *enough))


def equal(difference: Estimate, margin: float, evidence: str) -> Finding:
    """Judge that a difference is within a margin, at every point where there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner_lab import Estimate, equal
    >>> [equal(Estimate(np.array(mean), np.array(1.0)), 3.0, "").holds for mean in (0.5, 9.0, 2.0)]
    [True, False, None]
    """
    low, high = interval(difference)
    far_low, far_high = interval(difference, points=difference.mean.size)
    inside = ((low > -margin) & (high < margin)).all()
    holds = _decided(inside, ((far_low > margin) | (far_high < -margin)).any())
    room = margin - np.abs(difference.mean)
    return Finding(
        holds, evidence, smallest_effect(difference), _needed(holds, difference, room, difference.mean.size, 1)
    )


def mostly_equal(difference: Estimate, margin: float, evidence: str, *, share: float) -> Finding:
    """Judge that a difference is within a margin at a share of the points; undecided ones count for neither side."""
    low, high = interval(difference)
    n, inside = difference.mean.size, (low > -margin) & (high < margin)
    outside = (high < -margin) | (low > margin)
    holds = _decided(inside.sum() >= share * n, outside.sum() > (1 - share) * n)
    enough, room = (math.ceil(share * n), math.floor((1 - share) * n) + 1), margin - np.abs(difference.mean)
    return Finding(holds, evidence, smallest_effect(difference), _needed(holds, difference, room, *enough))


def agreement(simulated: Estimate, exact: Any, *, margin: float = 0.1) -> Finding:
    """Judge that simulated numbers have the values of a formula.

    It does not hold if a number is four standard errors away from its value, as noise alone makes one in 16 000.
    It holds if more than half of the intervals are also within a margin, relative to the values; otherwise the
    simulation is too coarse to confirm the formula.  The smallest effect is a relative error of the formula, at the
    median point.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner_lab import Estimate, agreement
    >>> [agreement(Estimate(np.array(1.01), np.array(error)), 1.0).holds for error in (0.01, 0.001, 0.5)]
    [True, False, None]
    """
    mean, error = np.ravel(simulated.mean), np.ravel(simulated.error)
    value = np.ravel(np.broadcast_to(np.asarray(exact, dtype=np.float64), np.shape(simulated.mean)))
    scale = np.where(value == 0, 1.0, np.abs(value))
    relative = Estimate((mean - value) / scale, error / scale, simulated.samples)
    near = np.abs(relative.mean) <= 4 * relative.error + 1e-12
    low, high = interval(relative)
    inside = (low > -margin) & (high < margin)
    evidence = f"{share(near)} agree within four standard errors, {share(inside)} to {margin:g} of the value."
    seen = (4 + ndtri(POWER)) * float(np.median(relative.error))
    return Finding(_decided(near.all() and 2 * inside.sum() > inside.size, not near.all()), evidence, seen)


def not_worse(gain: Estimate, margin: float, evidence: str) -> Finding:
    """Judge that nothing is lost beyond a margin, at every point where there are several."""
    return superior(gain, evidence, least=-margin)


def together(findings: Iterable[Finding], evidence: str) -> Finding:
    """Join findings: all of them hold, one does not, or it is undecided."""
    found = list(findings)
    sizes = [one.smallest for one in found if one.smallest is not None]
    holds = _decided(all(one.holds for one in found), any(one.holds is False for one in found))
    needed = [one.needed for one in found if one.needed is not None]
    return Finding(holds, evidence, max(sizes, default=None), max(needed, default=None) if holds is None else None)


def interval(estimate: Estimate, points: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Confidence interval of the mean; for several points, of all of them at once (Bonferroni)."""
    half = _quantile(estimate, 1 - (1 - LEVEL) / (2 * points)) * estimate.error
    return estimate.mean - half, estimate.mean + half


def smallest_effect(estimate: Estimate) -> float:
    """The effect that the interval would exclude zero for with probability `POWER`, at the worst point."""
    return float(np.max((_quantile(estimate, (1 + LEVEL) / 2) + _quantile(estimate, POWER)) * estimate.error))


def _needed(
    holds: bool | None, estimate: Estimate, gap: np.ndarray, points_for: int, points_against: int
) -> float | None:
    """Times as many samples that would decide, from the gaps to the threshold that were seen, positive where it is true."""
    if holds is not None or not np.any(estimate.error):
        return None
    both = ndtri((1 + LEVEL) / 2) + ndtri(POWER)
    gaps = np.ravel(gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.square(both * np.ravel(estimate.error) / gaps)
    for seen, points in ((np.sort(times[gaps > 0]), points_for), (np.sort(times[gaps < 0]), points_against)):
        if len(seen) >= points:
            return max(1.0, float(seen[points - 1]))
    return None


def _quantile(estimate: Estimate, level: float) -> np.ndarray:
    return np.asarray(ndtri(level) if estimate.samples is None else stdtrit(estimate.samples - 1, level))


def _decided(holds: bool | np.bool_, fails: bool | np.bool_) -> bool | None:
    return True if holds else False if fails else None


def without_power(finding: Finding, reason: str) -> Finding:
    """Leave undecided what was estimated in a set-up that failed its power check."""
    if finding.smallest is None:
        return finding
    return replace(finding, holds=None, evidence=f"{finding.evidence} {reason}", needed=None)


def verdict_of(findings: Iterable[Finding]) -> str:
    """The verdict that follows from the findings of all statements, which the claim makes together.

    It holds if all are true.  One that is false refutes the whole: it then holds in part if another is true, and does not
    hold if none is.  With none false and some undecided, it is undecided.

    Examples
    --------
    >>> from bochner_lab import Finding
    >>> verdict_of([Finding(True, ""), Finding(False, "")]), verdict_of([Finding(True, ""), Finding(None, "")])
    ('holds in part', 'undecided')
    """
    truths = [finding.holds for finding in findings]
    if False in truths:
        return IN_PART if True in truths else FAILS
    return HOLDS if truths and all(truths) else UNDECIDED
