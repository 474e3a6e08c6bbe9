"""QBF Figure 4: the sparsity of butterfly matrices in dimensions that are not powers of two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.rotations import UnpaddedButterfly

from ..._experiment import Experiment, Results, by_profile, statement
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ButterflySparsity(Experiment):
    """Butterflies made by deletion, as the supplement does it."""

    name = "qbf-fig4"
    paper = "qbf"
    item = "Figure 4"
    claim = "For d = 15 a butterfly matrix has columns with zeros, which the product BPBPBP does not have."
    methods = ("B", "BPBPBP")
    profiles = by_profile(smoke={"d": (15, 16), "draws": 10}, full={"d": (15, 16), "draws": 1000})
    seconds = by_profile(smoke=0.2, full=1)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension."""
        return [f"d={d}" for d in p["d"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Numbers of zeros, how far the matrices are from orthogonal, and one pattern of each."""
        d = int(part[2:])
        singles, products = (UnpaddedButterfly(k).sample(d, p["draws"], rng).to_dense() for k in (1, 3))
        both = np.array([*singles, *products])
        return {
            "zeros of B": [int((np.abs(B) < 1e-14).sum()) for B in singles],
            "zeros of BPBPBP": [int((np.abs(B) < 1e-14).sum()) for B in products],
            "largest error": float(np.abs(both @ both.swapaxes(1, 2) - np.eye(d)).max()),
            "pattern of B": np.abs(singles[0]) > 1e-14,
            "pattern of BPBPBP": np.abs(products[0]) > 1e-14,
        }

    @statement("At d = 15 every draw of B has zeros, and at d = 16 none has.")
    def single(self, results: Results) -> Finding:
        """Count zeros."""
        odd, even = (np.array(results.parts[name]["zeros of B"]) for name in ("d=15", "d=16"))
        return Finding(bool((odd > 0).all() and (even == 0).all()), f"At d = 15 {odd.min()} to {odd.max()} zeros.")

    @statement("At d = 15 no draw of BPBPBP has zeros.")
    def product(self, results: Results) -> Finding:
        """Count zeros."""
        zeros = np.array(results.parts["d=15"]["zeros of BPBPBP"])
        return Finding(bool((zeros == 0).all()), f"{(zeros > 0).sum()} of {zeros.size} draws have zeros.")

    @statement("All matrices are orthogonal to 1e-12.")
    def orthogonal(self, results: Results) -> Finding:
        """The largest error."""
        worst = max(part["largest error"] for part in results.parts.values())
        return Finding(worst < 1e-12, f"The largest error is {worst:.1e}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Patterns of one draw."""
        cases = [(name, kind) for name in results.parts for kind in ("BPBPBP", "B")]
        for ax, (name, kind) in zip(figure.subplots(1, len(cases)), cases, strict=True):
            ax.spy(np.array(results.parts[name][f"pattern of {kind}"]), markersize=4)
            ax.set_title(f"{kind}, {name}", fontsize="small")
