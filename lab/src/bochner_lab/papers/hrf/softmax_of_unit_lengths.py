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
    """A model trained with the penalties of Eq. 105 and a scale of 6."""

    name = "hrf-fig8"
    item = "Figures 8 and 9, Table 5"
    table = "table5"
    claim = (
        "On WikiText-2 with lengths close to one, angular and Gaussian hybrids approximate the softmax distributions "
        "more accurately than FAVOR+ and trigonometric features."
    )
    deviations = (
        "Features estimate the kernel of the scaled logits, exp(6 q k), which is that of the exact distributions. The "
        "paper's model has 650 units and 33278 classes."
        + DEVIATIONS
        + ": these models have about 15, with the scale. To decide it takes models of shorter queries and keys that "
        "still beat a bigram table, which has a perplexity of 136; these have 220. In the authors' published notebook the "
        "hybrids estimate exp(6 q k / sqrt(d)), and not the kernel of the exact distributions and of trigonometric "
        "features, and the Kolmogorov-Smirnov distance is one of the values of probabilities; here all methods "
        "estimate one kernel."
    )
    profiles = language_model_profiles(steps=700, scale=6.0, length_penalty=2.0)
    seconds = by_profile(smoke=2, full=110)

    @statement(
        "The penalties keep the median lengths of queries and of keys within 10% of one, for both models.", ours=True
    )
    def lengths(self, results: Results) -> Finding:
        """Look at the medians."""
        medians = [found["median"] for part in results.parts.values() for found in part["lengths"].values()]
        shown = ", ".join(f"{median:.3f}" for median in medians)
        return Finding(all(abs(median - 1) <= 0.1 for median in medians), f"Medians: {shown}.")
