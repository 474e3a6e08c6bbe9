"""HRF Figures 3 and 7 and Table 4 on other text: softmax distributions of a language model with free lengths."""

from __future__ import annotations

from ..._experiment import Results, by_profile, statement
from ..._verdicts import Finding
from ._softmax_distributions import (
    DEVIATIONS,
    NEGATIVE,
    SoftmaxDistributions,
    language_model_profiles,
)


class SoftmaxOfLanguageModel(SoftmaxDistributions):
    """A model trained without a condition on the lengths of queries and keys."""

    name = "hrf-fig3-wikitext"
    item = "Figures 3 and 7, Table 4"
    table = "table4"
    claim = (
        "Angular and Gaussian hybrids approximate the softmax distributions of a language model more accurately than "
        "FAVOR+ and trigonometric features, with fewer negative estimates."
    )
    deviations = "WikiText-2 stands in for the Penn Treebank." + DEVIATIONS
    profiles = language_model_profiles(scale=1.0, length_penalty=0.0)
    seconds = by_profile(smoke=2, full=360)

    @statement(
        "Both hybrids have a smaller fraction of negative estimates than trigonometric features, at every size for all "
        "models (95 % intervals)."
    )
    def negative(self, results: Results) -> Finding:
        """Compare with trigonometric features."""
        return self.lowest(results, NEGATIVE, ("favor",))
