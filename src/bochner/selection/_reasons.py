"""Explanations of a recommendation, and warnings about problems that no mechanism can solve."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels import Kernel
from ..reporting import figure
from ._recommendation import Candidate
from ._sample import Facts

_USELESS = 1.0  # relative error of the estimate that is zero everywhere
_NEARLY_ALL = 0.99  # share of the squared Gram matrix on its diagonal from which errors are those of x = y only
_NEAR, _LISTED = 1.05, 5
"""Ratio of errors within which mechanisms are called nearly equal, and how many of them are named."""


def reasons(ranking: Sequence[Candidate], facts: Facts) -> tuple[str, ...]:
    """Return sentences that describe the data, explain map, constants and rows, and name a faster alternative."""
    effect = ranking[0].plan.map.effect(facts)
    found = (_data(facts), _map(ranking, facts), effect, _rows(ranking, facts), _faster(ranking), _nearly(ranking))
    return tuple(sentence for sentence in found if sentence)


def _data(facts: Facts) -> str:
    spread = f", from {facts.smallest_norm2:.3g} to {facts.largest_norm2:.3g}" if facts.norms_vary else ""
    return (
        f"At the kernel's scale |x|^2 averages {facts.norm2:.3g}{spread}; |x-y|^2 {facts.distance2:.3g} and "
        f"|x+y|^2 {facts.sum2:.3g}."
    )


def _map(ranking: Sequence[Candidate], facts: Facts) -> str:
    best = ranking[0]
    other = next((c for c in ranking if c.plan.map.family != best.plan.map.family), None)
    if other is None:
        return ""
    return f"{best.plan.map.why(facts)} The best of another kind is {other.label} with {_against(other, best)}."


def _rows(ranking: Sequence[Candidate], facts: Facts) -> str:
    best = ranking[0]
    plain = next((c for c in ranking if c.spec.map == best.spec.map and c.spec.projection.coupling == "iid"), None)
    if plain is None or plain is best or not best.spec.map.uses_rows:
        return ""
    return f"{best.spec.projection.why(facts)} Independent rows have {_against(plain, best)}."


def _faster(ranking: Sequence[Candidate]) -> str:
    best = ranking[0]
    close = [c for c in ranking[1:] if c.error <= 1.1 * best.error and c.n_features <= 1.1 * best.n_features]
    quick = min(close, key=lambda c: c.seconds_per_row, default=best)
    if quick.seconds_per_row > best.seconds_per_row / 1.5:
        return ""
    ratio = best.seconds_per_row / quick.seconds_per_row
    return f"{quick.label} is {figure(ratio)} times faster here, with {_against(quick, best)}."


def _nearly(ranking: Sequence[Candidate]) -> str:
    """Name the candidates that other sampled pairs could have put first."""
    best = ranking[0]
    near = [c.label for c in ranking[1:] if c.bound <= _NEAR * best.bound and c.n_features <= _NEAR * best.n_features]
    if not near:
        return ""
    listed = "; ".join(near[:_LISTED]) + (f"; and {len(near) - _LISTED} more" if len(near) > _LISTED else "")
    return f"Nearly equal, within {100 * (_NEAR - 1):.0f} %, so that another sample may put it first: {listed}."


def _against(other: Candidate, best: Candidate) -> str:
    if other.n_features > 1.05 * best.n_features and abs(other.error - best.error) < 0.3 * best.error:
        return f"{other.n_features / best.n_features:.1f} times the features"
    return f"an error of {other.error:.3g} against {best.error:.3g}"


def warnings(
    ranking: Sequence[Candidate], facts: Facts, kernel: Kernel, tolerance: float | None, reached: bool
) -> tuple[str, ...]:
    """Return warnings about problems of the data or the kernel that no mechanism can solve."""
    best = min(ranking, key=lambda c: c.error)
    said = []
    if best.error >= _USELESS:
        said.append(
            f"no mechanism estimates this kernel with {best.n_features} features: the smallest predicted error is "
            f"{best.error:.3g}, and an estimate of zero has an error of 1. {_remedy(facts, kernel)}"
        )
    elif tolerance is not None and not reached:
        said.append(
            f"no mechanism reaches the tolerance {tolerance:g} with {best.n_features} features: the smallest predicted "
            f"error is {best.error:.3g}. {_remedy(facts, kernel)}"
        )
    if facts.diagonal_share > _NEARLY_ALL:
        said.append(
            f"the diagonal holds {facts.diagonal_share:.4%} of the squared Gram matrix, so these errors describe "
            f"x = y only. {_remedy(facts, kernel)}"
        )
    return tuple(said)


def _remedy(facts: Facts, kernel: Kernel) -> str:
    if kernel.has_bandwidth and not kernel.shift_invariant and max(facts.norm2, facts.largest_norm2 / 4) > 4:
        longest = f" and reaches {facts.largest_norm2:.3g}" if facts.norms_vary else ""
        return (
            f"|x|^2 averages {facts.norm2:.3g}{longest}: {kernel.name} features cannot estimate this kernel; normalise or "
            f"lower the scale."
        )
    if kernel.shift_invariant and facts.distance2 > 8:
        return (
            f"|x-y|^2 averages {facts.distance2:.3g} lengthscales squared, and the kernel {facts.kernel_mean:.1e}: the "
            f"Gram matrix is nearly diagonal; standardise the columns or lengthen the lengthscale."
        )
    return "Allow more features, or a larger tolerance."
