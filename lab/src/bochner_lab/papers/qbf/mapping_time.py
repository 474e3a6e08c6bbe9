"""QBF Figure 3 and Table 1: time and space of the mapping against the dimension, as exponents."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import power_law
from ..._experiment import Experiment, Results, Row, by_profile, printed, statement
from ..._figures import legend, panels
from ..._verdicts import Finding
from ._mechanisms import kernel_of, specification

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {"ORF": "Gort", "QMC": "QMC", "ROM": "ROM", "Quadrature": "B"}
STRUCTURED = ("ROM", "Quadrature")


class MappingTime(Experiment):
    """The Gaussian kernel at the width of one rule, D = 2 (d + 1) + 1, in float32."""

    name = "qbf-fig3"
    paper = "qbf"
    item = "Figure 3 and Table 1"
    claim = "ROM and quadrature features take O(d) space and O(d log d) time, ORF and QMC O(Dd) of both."
    methods = tuple(METHODS)
    timed = True
    deviations = (
        "Dimensions are powers of two, so that padding does not disturb the exponents. With D growing as d, O(Dd) is "
        "the exponent two, and O(d log d) between one and one and a half at these dimensions. Table 1 counts a rule; "
        "the features themselves, D per row, need O(D)."
    )
    profiles = by_profile(
        smoke={"d": (64, 128, 256), "rows": 64, "repeats": 3},
        full={"d": (128, 256, 512, 1024, 2048), "rows": 512, "repeats": 7},
    )
    seconds = by_profile(smoke=1, full=6.9)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per method and dimension."""
        return [f"{method} {d}" for method in METHODS for d in p["d"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """The shortest of several runs per row of data, and the bytes of the drawn features."""
        method, d = part.split()
        X = rng.standard_normal((p["rows"], int(d)), dtype=np.float32)
        phi = specification(METHODS[method], kernel_of("gaussian", int(d)), int(d), 1).draw(int(d), rng)
        phi.queries(X)
        times = []
        for _ in range(p["repeats"]):
            start = time.perf_counter()
            phi.queries(X)
            times.append(time.perf_counter() - start)
        return {"seconds": min(times) / p["rows"], "bytes": phi.nbytes}

    @statement("The exponent of the space is above 1.8 for ORF and QMC, and below 1.2 for ROM and quadrature.")
    def space(self, results: Results) -> Finding:
        """Compare the exponents."""
        return self._exponents(results, "bytes", 1.8, 1.2)

    @statement("The exponent of the time is above 1.5 for ORF and QMC, and below 1.5 for ROM and quadrature.")
    def time(self, results: Results) -> Finding:
        """Compare the exponents."""
        return self._exponents(results, "seconds", 1.5, 1.5)

    @statement("At the largest dimension quadrature features are faster than ORF and QMC.")
    def faster(self, results: Results) -> Finding:
        """Compare the times."""
        times = {name: self._values(results, name, "seconds")[-1] for name in METHODS}
        text = ", ".join(f"{name} {1e6 * value:.1f} us" for name, value in times.items())
        return Finding(times["Quadrature"] < min(times["ORF"], times["QMC"]), f"{text} per row.")

    def comparison(self, results: Results) -> list[Row]:
        """Measured exponents next to the complexities."""
        entry, rows = printed("qbf", "table1"), []
        for name, (space, of_time) in entry["rows"].items():
            for kind, cell, key in (("space", space, "bytes"), ("time", of_time, "seconds")):
                found = power_law(results.parameters["d"], self._values(results, name, key))
                rows.append(
                    Row(f"{name}, exponent of {kind} ({entry['where']})", cell, float(found.mean), float(found.error))
                )
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Time and space."""
        axes = panels(figure, ("seconds per row", "bytes"), "d", "")
        for k, name in enumerate(METHODS):
            for ax, key in zip(axes, ("seconds", "bytes"), strict=True):
                ax.loglog(
                    results.parameters["d"], self._values(results, name, key), marker="o", color=f"C{k}", label=name
                )
        legend(figure, axes[0])

    def _values(self, results: Results, name: str, key: str) -> list[float]:
        return [results.parts[f"{name} {d}"][key] for d in results.parameters["d"]]

    def _exponents(self, results: Results, key: str, dense: float, structured: float) -> Finding:
        found = {name: power_law(results.parameters["d"], self._values(results, name, key)) for name in METHODS}
        true = all(
            value.mean < structured if name in STRUCTURED else value.mean > dense for name, value in found.items()
        )
        return Finding(true, ", ".join(f"{name} {v.mean:.2f} +- {v.error:.2f}" for name, v in found.items()) + ".")
