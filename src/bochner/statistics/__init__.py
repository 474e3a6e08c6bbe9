"""Kernel two-sample and independence tests in linear time, with exact size.

- `mmd_test`: two samples, by the maximum mean discrepancy; `TwoSampleTest` is the same on streams;
- `hsic_test`: two variables, by the Hilbert-Schmidt independence criterion; `IndependenceTest` is the same on streams;
- `KernelTest`: their result, with the p-value, the statistics under permutations, and the directions that differ most.
"""

from .._facts import publish
from ._independence import IndependenceTest, hsic_test
from ._result import KernelTest as KernelTest
from ._two_sample import TwoSampleTest, mmd_test

__all__ = ["IndependenceTest", "TwoSampleTest", "hsic_test", "mmd_test"]

publish(globals())
