"""Features that a module draws from a specification, and whose constants it chooses from its data."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from .._arrays import in_working_precision
from ..approximation import Approximation, FeatureMap
from ..approximation.log_features import key_values, query_values, stabiliser, weights_of
from ._attention_parts import levels_to_the_caller
from ._checkpoint import FORMAT
from ._feature_buffers import FeatureBuffers
from ._head_spec import HeadSpec
from ._process_groups import from_first_replica

_FITTED_ROWS = 1024  # rows of queries and of keys of each head from which constants are chosen
_LARGE_ERROR = 0.5  # relative error of attention weights above which a warning says so: the output is then mostly noise

_MODULE = "attention"  # owner of warnings of modules

_warned: set[str] = set()
"""Owners that have warned: one layer of a model speaks for all, and one call of a function for those that follow."""


class DrawnFeatures(FeatureBuffers):
    """Features for the heads of an attention, drawn from one specification or from a plan for each head.

    What is drawn is kept in buffers, with the plan that it was drawn from.

    Parameters
    ----------
    spec : Approximation or tuple of planned ones
        One for all heads, or one for each.
    d : int
        Width of a head.
    heads : int
        Number of heads; features of data (..., heads, n, d).
    per_head : bool
        Whether each head has its own rows.  Constants chosen from data belong to a head in any case.
    dtype : torch.dtype
        float32 or float64.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.
    """

    def __init__(
        self,
        spec: HeadSpec,
        d: int,
        heads: int = 1,
        per_head: bool = False,
        *,
        dtype: torch.dtype = torch.float32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._describe(spec, d, heads, per_head, dtype)
        self.register_buffer("format_version", torch.tensor(FORMAT))
        self.register_buffer("seeds", torch.zeros(heads if per_head else 1, dtype=torch.int64))
        self.register_buffer("fitted", torch.tensor(not self.adaptive))
        # before the first data: normalised activations, at the usual scale
        rows = torch.randn(heads, 2, _FITTED_ROWS, d, generator=torch.Generator().manual_seed(0)) * d**-0.25
        plans = self._planned(rows)
        self._plan_size = 2 * self._header().encode(plans).numel() + 1024
        self._hold_plans(plans)
        self.redraw(generator)

    @property
    def waits(self) -> bool:
        """Whether constants are still to be chosen from data."""
        return self._waits

    @property
    def n_draws(self) -> int:
        """Number of draws: one for each head, or one for all."""
        return self._n_draws

    def drawn(self) -> list[FeatureMap]:
        """The feature map of each draw, drawn from its plan and seed."""
        seeds = self.seeds.tolist()
        return [plan.draw(self.d, rng=seeds[i % len(seeds)]) for i, plan in enumerate(self.plans)]

    @property
    def maps(self) -> list[FeatureMap]:
        """The feature map of each draw as it is now: with rows that were trained, where they were."""
        return self._current_maps() if "arrays" in self._modules else self.drawn()

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw all rows anew, with the constants of the plans; by default from torch's global generator."""
        device = "cpu" if generator is None else generator.device
        self.seeds.copy_(torch.randint(2**63 - 1, self.seeds.shape, generator=generator, device=device))
        self._draw()

    @torch.compiler.disable
    def fit(self, q: Tensor, k: Tensor) -> None:
        """Choose the constants of each head from queries and keys, and draw with the same seeds.

        Parameters
        ----------
        q, k : Tensor (heads, n, d)
            Queries and keys times the root of the scale; some random rows of them are used.
        """
        rows = None
        if q.shape[-2] and k.shape[-2]:
            rows = torch.stack([_some_rows(x.detach().to(self.seeds.device, self.dtype)) for x in (q, k)], dim=1)
        rows = from_first_replica(rows, (self.heads, 2, _FITTED_ROWS, self.d), self.dtype, self.seeds)
        if rows is None:
            return  # nothing to choose from yet
        if self.adaptive:
            self._hold_plans(self._planned(rows))
            self._draw()
        self.fitted.fill_(True)
        self._waits = False

    judged = False  # whether the error of the features on data was looked at

    def is_new(self, *, alone: bool) -> bool:
        """Whether `fit_call` has something to do: constants to choose, or an error to predict."""
        unseen = alone and not self.judged and _MODULE not in _warned and not torch.compiler.is_compiling()
        return self._waits or unseen

    @torch.no_grad()
    def fit_call(
        self,
        q: Tensor,
        k: Tensor,
        key_mask: Tensor | None,
        scale: float | Tensor,
        *,
        alone: bool = True,
        again: bool = False,
    ) -> None:
        """Choose the constants, if they are still to be chosen, and predict the error from one call, without padding.

        Parameters
        ----------
        q, k : Tensor (batch, heads, length, d)
            Queries and keys as they are.
        key_mask : Tensor (batch, Lk) of bool or None
            Which keys there are; queries in as many places are padded as keys are.
        scale : float or Tensor
            Factor of the dot products.
        alone : bool
            Whether features estimate all keys: without exact ones beside them, a large error is worth a warning.
        again : bool
            Whether constants are chosen anew where there are some already.
        """
        if self._waits and torch.compiler.is_compiling():  # a graph cannot hold a choice from data
            raise RuntimeError(
                "attention: constants are chosen from the first batch; call it once before it is compiled or exported."
            )
        root = torch.as_tensor(scale, device=q.device).sqrt()
        q, k = ((in_working_precision(x) * root).transpose(0, 1) for x in (q, k))  # (heads, batch, length, d)
        there = torch.ones_like(k[0, ..., 0], dtype=torch.bool) if key_mask is None else key_mask.expand(k.shape[1:3])
        queries, keys = q[:, there] if q.shape == k.shape else q.flatten(1, 2), k[:, there]
        if self._waits or again:
            self.fit(queries, keys)
        if alone and not self.judged:
            self.judged = not torch.compiler.is_compiling()
            self.warn_of_error(_MODULE, queries, keys)

    @torch.no_grad()
    def warn_of_error(self, owner: str, q: Tensor, k: Tensor) -> None:
        """Warn where features are not expected to estimate attention, from queries and keys (heads, n, d) as in `fit`."""
        if owner in _warned or torch.compiler.is_compiling() or not (q.shape[-2] and k.shape[-2]) or q.is_meta:
            return
        q, k = (_some_rows(x.to(self.dtype), count) for x, count in ((q, 64), (k, 256)))
        exact = (q @ k.mT).softmax(dim=-1)
        features = self.current
        keys = features.log(k, key=True)
        shift = stabiliser(keys)
        found = weights_of(query_values(features.log(q, key=False), shift), key_values(keys, shift))
        error = float((found - exact).norm() / exact.norm())
        if not error > _LARGE_ERROR:
            return
        _warned.add(owner)
        warnings.warn(
            f"{owner}: the predicted relative error of attention is {error:.2g} with {self.plans[0].n_projections} rows of "
            f"W, so that the output is far from softmax attention; give near keys exact weights (window=64, "
            f"anchors=1; for a trained model by nn.calibrate), use more rows or smaller queries and keys, or keep softmax.",
            UserWarning,
            stacklevel=levels_to_the_caller(),
        )

    def replan(self, plans: list[Approximation], rows: np.ndarray | None = None) -> None:
        """Take other constants for each draw, and its rows as they were drawn or as they were trained, (draws, m, d)."""
        self._hold_plans(plans)
        maps = self.drawn()
        if rows is not None:
            trained = [{"base/W": W, "base/radii": np.linalg.norm(W, axis=-1)} for W in rows]
            pairs = zip(maps, trained, strict=True)
            maps = [FeatureMap.from_arrays(phi.spec, self.d, phi.to_arrays() | own) for phi, own in pairs]
        self._hold_drawn(maps)

    def _planned(self, rows: Tensor) -> list[Approximation]:
        """The plan of each draw, from rows (heads, 2, n, d) of queries and keys."""
        if isinstance(self.spec, tuple):
            return list(self.spec)
        if not self.adaptive:
            return [self.spec] * self._n_draws
        return [self.spec.plan(q, k, rng=0) for q, k in rows.double().cpu().numpy()]

    def _draw(self) -> None:
        self._hold_drawn(self.drawn())

    def _hold_drawn(self, maps: list[FeatureMap]) -> None:
        form = self._form(maps)
        if form is None or form.framed:
            self._hold_maps(maps, form)
        else:
            self._hold_matrix(form.queries.matrix, form.signs)

    def extra_repr(self) -> str:
        """What it was drawn from."""
        spec = "a plan for each head" if isinstance(self.spec, tuple) else repr(self.spec)
        return f"{spec}, d={self.d}, heads={self.heads}, per_head={self.per_head}"


def _some_rows(x: Tensor, count: int = _FITTED_ROWS) -> Tensor:
    """Random rows of (heads, n, d), the same each time; of fewer, each about as often.

    Equally spaced ones would see the same few places of every sequence where its length divides the step.
    """
    n = x.shape[-2]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return x[:, order[torch.arange(count) % n].to(x.device)]
