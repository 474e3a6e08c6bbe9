"""Vector instructions for Numba: sums and differences, and plane rotations, of whole runs of numbers.

LLVM's own vectoriser has to prove that two rows of one array do not overlap, and gives up or checks at run time in
every short loop.  These intrinsics say it outright: load some vectors, combine them in registers, store them back.
Offsets and strides count elements of the array's flat memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

VECTOR_BYTES = 32  # one AVX register; wider machines pair them, narrower ones split them


def width_of(dtype_bytes: int) -> int:
    """How many elements one vector holds."""
    return VECTOR_BYTES // dtype_bytes


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The transpose of a square matrix held in registers, by exchanging ever larger off-diagonal squares."""
    n = len(rows)
    half = 1
    while half < n:
        # column c of the upper row stays where c & half is zero, and comes from the lower row otherwise
        upper = [c if not c & half else n + (c ^ half) for c in range(n)]
        lower = [c ^ half if not c & half else n + c for c in range(n)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), n), mask) for mask in (upper, lower)]
        for low in (i for i in range(n) if not i & half):
            a, b = rows[low], rows[low + half]
            rows[low], rows[low + half] = (builder.shuffle_vector(a, b, mask) for mask in masks)
        half *= 2
    return rows


class _Memory:
    """Vector loads and stores at element offsets of one array, while code is being generated."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any) -> None:
        self.builder = builder
        self.data = context.make_array(array_type)(context, builder, array).data
        element = context.get_data_type(array_type.dtype)
        self.alignment = context.get_abi_sizeof(element)
        self.width = width_of(self.alignment)
        self.vector = ir.VectorType(element, self.width)

    def pointer(self, offset: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(self.data, [offset]), self.vector.as_pointer())

    def pointers(self, offset: Any, stride: Any, count: int) -> list[Any]:
        """Pointers to ``count`` vectors that lie ``stride`` apart."""
        found = []
        for _ in range(count):
            found.append(self.pointer(offset))
            offset = self.builder.add(offset, stride)
        return found

    def load(self, pointer: Any) -> Any:
        return self.builder.load(pointer, align=self.alignment)

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, pointer, align=self.alignment)

    def broadcast(self, scalar: Any) -> Any:
        """A vector whose entries all equal ``scalar``."""
        lane = ir.IntType(32)
        undefined = ir.Constant(self.vector, ir.Undefined)
        single = self.builder.insert_element(undefined, scalar, ir.Constant(lane, 0))
        zeros = ir.Constant(ir.VectorType(lane, self.width), [0] * self.width)
        return self.builder.shuffle_vector(single, undefined, zeros)


def _walsh_of(radix: int) -> Any:
    @intrinsic
    def walsh_vectors(typingctx, array, start, stride):  # type: ignore[no-untyped-def]
        """Walsh-Hadamard transform, in registers, of ``radix`` vectors that lie ``stride`` apart."""
        signature = types.void(array, types.intp, types.intp)

        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            memory = _Memory(context, builder, signature.args[0], arguments[0])
            pointers = memory.pointers(arguments[1], arguments[2], radix)
            rows = [memory.load(pointer) for pointer in pointers]
            half = 1
            while half < radix:
                for low in (i for i in range(radix) if not i & half):
                    a, b = rows[low], rows[low + half]
                    rows[low], rows[low + half] = builder.fadd(a, b), builder.fsub(a, b)
                half *= 2
            for row, pointer in zip(rows, pointers, strict=True):
                memory.store(row, pointer)
            return context.get_dummy_value()

        return signature, codegen

    return walsh_vectors


walsh2, walsh4, walsh8 = _walsh_of(2), _walsh_of(4), _walsh_of(8)


@intrinsic
def rotate_vectors(typingctx, array, first, second, cosine, sine):  # type: ignore[no-untyped-def]
    """(a, b) <- (cosine a - sine b, sine a + cosine b) for the vectors at offsets ``first`` and ``second``."""
    signature = types.void(array, types.intp, types.intp, array.dtype, array.dtype)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        memory = _Memory(context, builder, signature.args[0], arguments[0])
        at_a, at_b = memory.pointer(arguments[1]), memory.pointer(arguments[2])
        c, s = memory.broadcast(arguments[3]), memory.broadcast(arguments[4])
        a, b = memory.load(at_a), memory.load(at_b)
        memory.store(builder.fsub(builder.fmul(c, a), builder.fmul(s, b)), at_a)
        memory.store(builder.fadd(builder.fmul(s, a), builder.fmul(c, b)), at_b)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scale_vector(typingctx, array, start, factor):  # type: ignore[no-untyped-def]
    """Multiply the vector at offset ``start`` by ``factor``."""
    signature = types.void(array, types.intp, array.dtype)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        memory = _Memory(context, builder, signature.args[0], arguments[0])
        at = memory.pointer(arguments[1])
        memory.store(builder.fmul(memory.load(at), memory.broadcast(arguments[2])), at)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def transpose_square(typingctx, source, at, stride, target, to, pace):  # type: ignore[no-untyped-def]
    """Transpose a square of one vector's width: rows ``stride`` apart at ``at``, into rows ``pace`` apart at ``to``."""
    signature = types.void(source, types.intp, types.intp, target, types.intp, types.intp)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        memory = _Memory(context, builder, signature.args[0], arguments[0])
        rows = [memory.load(p) for p in memory.pointers(arguments[1], arguments[2], memory.width)]
        result = _Memory(context, builder, signature.args[3], arguments[3])
        for row, p in zip(
            _transposed(builder, rows), result.pointers(arguments[4], arguments[5], memory.width), strict=True
        ):
            result.store(row, p)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def transpose_scaled(typingctx, source, at, stride, target, to, pace, factors, first):  # type: ignore[no-untyped-def]
    """Transpose a square tile like `transpose_square`, with column i of the result multiplied by ``factors[first + i]``."""
    signature = types.void(source, types.intp, types.intp, target, types.intp, types.intp, factors, types.intp)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        memory = _Memory(context, builder, signature.args[0], arguments[0])
        rows = [memory.load(p) for p in memory.pointers(arguments[1], arguments[2], memory.width)]
        scale = _Memory(context, builder, signature.args[6], arguments[6])
        by = scale.load(scale.pointer(arguments[7]))
        result = _Memory(context, builder, signature.args[3], arguments[3])
        for row, p in zip(
            _transposed(builder, rows), result.pointers(arguments[4], arguments[5], memory.width), strict=True
        ):
            result.store(builder.fmul(row, by), p)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_vector(typingctx, target, to, source, at):  # type: ignore[no-untyped-def]
    """Add the vector at offset ``at`` of ``source`` to the one at offset ``to`` of ``target``."""
    signature = types.void(target, types.intp, source, types.intp)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        result = _Memory(context, builder, signature.args[0], arguments[0])
        memory = _Memory(context, builder, signature.args[2], arguments[2])
        p = result.pointer(arguments[1])
        result.store(builder.fadd(result.load(p), memory.load(memory.pointer(arguments[3]))), p)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def scale_and_add_vector(typingctx, target, to, factor, source, at):  # type: ignore[no-untyped-def]
    """Replace the vector a at offset ``to`` by ``factor`` a + b, b at offset ``at`` of ``source``."""
    signature = types.void(target, types.intp, target.dtype, source, types.intp)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        result = _Memory(context, builder, signature.args[0], arguments[0])
        memory = _Memory(context, builder, signature.args[3], arguments[3])
        p = result.pointer(arguments[1])
        scaled = builder.fmul(result.broadcast(arguments[2]), result.load(p))
        result.store(builder.fadd(scaled, memory.load(memory.pointer(arguments[4]))), p)
        return context.get_dummy_value()

    return signature, codegen
