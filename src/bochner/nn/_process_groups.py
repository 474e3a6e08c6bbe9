r"""Sums over a sequence that is spread over processes, and constants that replicas of a model share.

Only sums are communicated, never queries, keys or values.
Each process holds a piece of the sequence, in the order of ranks.  In full attention, sums are added over all ranks; in
causal attention each rank gets the sums of the ranks before it, by a prefix scan in :math:`\lceil\log_2 P\rceil + 1`
rounds.  Both are linear in the sums, and their gradients are the same operations, the scan from the other end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor
from torch import distributed as dist

from .._validation import shown
from ..approximation.log_features import NOTHING, KeySums

if TYPE_CHECKING:  # some builds of torch have no processes
    Group: TypeAlias = dist.ProcessGroup


def check_group(owner: str, group: Any) -> None:
    """Refuse anything but a process group."""
    if not (dist.is_available() and isinstance(group, dist.ProcessGroup)):
        raise TypeError(
            f"{owner}: process_group must be a torch.distributed process group such as dist.group.WORLD, got {shown(group)}."
        )


def total(sums: KeySums, group: Group) -> KeySums:
    """The sums over all ranks, on each of them."""
    shift = sums.shift.clone()
    dist.all_reduce(shift, dist.ReduceOp.MAX, group)
    values: Tensor = _Add.apply(sums.at(shift), group)
    return KeySums(values, shift)


def before(sums: KeySums, group: Group) -> KeySums:
    """The sums over all ranks before this one."""
    return KeySums(*_Scan.apply(sums.values, sums.shift, group, False))


class _Add(torch.autograd.Function):
    """All-reduce, whose gradient is an all-reduce: each rank's loss depends on the numbers of all."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: Group) -> Tensor:
        ctx.group = group
        values = values.contiguous().clone()
        dist.all_reduce(values, dist.ReduceOp.SUM, group)
        return values

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Add.apply(gradient, ctx.group), None


class _Scan(torch.autograd.Function):
    r"""The stabilised exclusive prefix scan, :math:`V_t = \sum_{r<t} v_r e^{c_r - C_t}`, :math:`C_t = \max_{r<t} c_r`.

    Its gradient is :math:`g_r = \sum_{t>r} G_t e^{c_r - C_t}`: the same scan of (G, -C) from the other end, times
    :math:`e^{c_r}`; since no C is below a c before it, nothing overflows.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, shift: Tensor, group: Group, reverse: bool) -> tuple[Tensor, Tensor]:
        out = exclusive_scan(KeySums(values, shift), group, reverse)
        ctx.group, ctx.reverse = group, reverse
        ctx.save_for_backward(shift, out.shift)
        ctx.mark_non_differentiable(out.shift)
        return out.values, out.shift

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Any:
        shift, reached = ctx.saved_tensors
        none = reached <= NOTHING  # no key so far: nothing depends on it
        scale = torch.where(none, NOTHING, -reached)
        back, top = _Scan.apply(gradient.masked_fill(none.mT, 0.0), scale, ctx.group, not ctx.reverse)
        return back * (top + shift).clamp(max=0.0).exp().mT, None, None, None


def exclusive_scan(sums: KeySums, group: Group, reverse: bool) -> KeySums:
    """Sums over the ranks before this one, or after it."""
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    place = size - 1 - rank if reverse else rank
    whole, distance = sums, 1
    while distance < size:
        received = _pass_on(whole, group, place, distance, reverse)
        whole = whole if received is None else received + whole
        distance *= 2
    received = _pass_on(whole, group, place, 1, reverse)
    if received is None:
        return KeySums(torch.zeros_like(sums.values), torch.full_like(sums.shift, NOTHING))
    return received


def _pass_on(sums: KeySums, group: Group, place: int, distance: int, reverse: bool) -> KeySums | None:
    """Send to the place that far ahead, and receive from that far behind; None where there is none."""
    size = dist.get_world_size(group)
    packed = torch.cat([sums.values, sums.shift.mT], dim=-1).contiguous()

    def peer(other: int) -> int:
        return int(dist.get_global_rank(group, size - 1 - other if reverse else other))

    operations, received = [], None
    if place + distance < size:
        operations.append(dist.P2POp(dist.isend, packed, peer(place + distance), group))
    if place >= distance:
        received = torch.empty_like(packed)
        operations.append(dist.P2POp(dist.irecv, received, peer(place - distance), group))
    for request in dist.batch_isend_irecv(operations) if operations else []:
        request.wait()
    return None if received is None else KeySums(received[..., :-1], received[..., -1:].mT.contiguous())


def from_first_replica(rows: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype, seeds: Tensor) -> Tensor | None:
    """The rows of the first replica where replicas of a model are trained together, so that all choose the same constants.

    Parameters
    ----------
    rows : Tensor or None
        The rows of this process; None where it has none.
    shape, dtype
        Of rows, for processes that have none.
    seeds : Tensor
        Overwritten by those of the first replica.
    """
    group = _group_of_replicas()
    if group is None:
        return rows
    first = dist.get_global_rank(group, 0)
    there = torch.tensor(rows is not None, device=seeds.device)
    rows = torch.zeros(shape, dtype=dtype, device=seeds.device) if rows is None else rows.contiguous()
    for tensor in (there, rows, seeds):
        dist.broadcast(tensor, first, group)
    return rows if bool(there) else None


def _group_of_replicas() -> Group | None:
    """The process group of the data-parallel model whose forward pass this is; None outside of one.

    Only there is it known that all processes are at the same place, and wait for each other.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return None
    from torch.nn.parallel import DistributedDataParallel

    model = getattr(DistributedDataParallel, "_active_ddp_module", None)
    return None if model is None else model.process_group
