"""HRF Figures 8 and 9 and Table 5: softmax distributions of a language model whose vectors have lengths close to one."""

from __future__ import annotations

from ..._experiment import Results, by_profile, statement
from ..._verdicts import Finding
from ._softmax_distributions import (
    DEVIATIONS,
    SoftmaxDistributions,
    language_model_profiles,
)


class SoftmaxOfUnitLengths(SoftmaxDistributions):
    """A model trained with the penalties of Eq. 105 and a scale."""

    name = "hrf-fig8"
    item = "Figures 8 and 9, Table 5"
    table = "table5"
    claim = (
        "On WikiText-2 with lengths close to one, angular and Gaussian hybrids approximate the softmax distributions "
        "more accurately than FAVOR+ and trigonometric features."
    )
    deviations = (
        "The scale is 3 in place of 6: at unit lengths, squared lengths that add up to 12 make every estimate with at most "
        "512 rows noise (Eq. 7), and the printed distances hardly differ."
        + DEVIATIONS
        + " Features estimate the kernel of the scaled logits, exp(3 q k). In the authors' published notebook the hybrids "
        "estimate exp(6 q k / sqrt(d)), and not the kernel of the exact distributions and of trigonometric features, and "
        "the Kolmogorov-Smirnov distance is one of the values of probabilities; here all methods estimate one kernel."
    )
    profiles = language_model_profiles(scale=3.0, length_penalty=2.0)
    seconds = by_profile(smoke=2, full=360)

    @statement(
        "The penalties keep the median lengths of queries and of keys within 10% of one, for all models.", ours=True
    )
    def lengths(self, results: Results) -> Finding:
        """Look at the medians."""
        medians = [found["median"] for part in self._models(results) for found in part["lengths"].values()]
        shown = ", ".join(f"{median:.3f}" for median in medians)
        return Finding(all(abs(median - 1) <= 0.1 for median in medians), f"Medians: {shown}.")
