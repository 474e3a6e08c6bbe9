"""Parameters of a torch module as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_flag, check_rows, shown


class ModuleParameters:
    """The parameters of a torch module as one float64 vector, and back.

    Use it to minimise over the weights of a network whose loss has no useful gradient.

    Parameters
    ----------
    module : torch.nn.Module
        The module.
    trainable_only : bool
        Whether parameters with ``requires_grad=False`` are left alone.

    Attributes
    ----------
    module : torch.nn.Module
        The module.
    size : int
        Length of the vector.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from bochner.optimize import ModuleParameters
    >>> parameters = ModuleParameters(torch.nn.Linear(3, 2))
    >>> parameters.size
    8
    >>> parameters.restore(np.arange(8.0)).bias.tolist()
    [6.0, 7.0]
    """

    def __init__(self, module: Any, *, trainable_only: bool = True) -> None:
        if not callable(getattr(module, "named_parameters", None)):
            raise TypeError(f"ModuleParameters: module must be a torch.nn.Module, got {shown(module)}.")
        check_flag("ModuleParameters", "trainable_only", trainable_only)
        self.module = module
        self._parameters = [p for p in module.parameters() if p.requires_grad or not trainable_only]
        self.size = sum(p.numel() for p in self._parameters)
        if not self.size:
            raise ValueError("ModuleParameters: module has no parameters to optimise.")

    def flatten(self) -> np.ndarray:
        """The present values, float64 (size,), in the order of ``module.parameters()``."""
        return np.concatenate([p.detach().cpu().double().numpy().ravel() for p in self._parameters])

    def restore(self, theta: Any) -> Any:
        """Write a vector into the parameters, in place, in their own types and on their own devices; return the module."""
        import torch

        theta = check_rows("ModuleParameters.restore", np.asarray(theta, dtype=np.float64), self.size)
        start = 0
        with torch.no_grad():
            for p in self._parameters:
                part = theta[start : start + p.numel()].reshape(tuple(p.shape))
                p.copy_(torch.from_numpy(np.array(part)))
                start += p.numel()
        return self.module
