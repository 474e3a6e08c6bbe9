"""Random features of kernels between the nodes of a graph, from random walks, in time linear in the number of nodes.

- node kernels: `Diffusion`, `RegularizedLaplacian`, `WalkSteps`, and any power series, `Series`;
- features: `Walks`, whose `Walks.draw` gives `NodeFeatures` as sparse matrices;
- regression on nodes: `NodeRegression`, the mean of a Gaussian process, by conjugate gradients on sparse features.

A graph is a symmetric sparse matrix of scipy with weights of at least zero, or a graph of networkx.
"""

from .._facts import publish
from ._node_kernels import Diffusion, NodeKernel, RegularizedLaplacian, Series, WalkSteps
from ._regression import NodeRegression
from ._walks import NodeFeatures as NodeFeatures
from ._walks import Walks

__all__ = [
    "Diffusion",
    "NodeKernel",
    "NodeRegression",
    "RegularizedLaplacian",
    "Series",
    "WalkSteps",
    "Walks",
]

publish(globals())
