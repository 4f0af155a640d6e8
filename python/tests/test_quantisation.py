"""Quantisation against NumPy in ONNX's arithmetic, ggml's blocks against the package gguf where it is installed."""

import itertools

import numpy as np
import pytest

import tuff
from tuff._quantisation import packed, unpacked

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


def spread(values, shape, axis, block):
    if axis is None:
        return np.broadcast_to(values, shape)
    if block is None:
        return np.broadcast_to(values.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
    return np.take(np.repeat(values, block, axis), np.arange(shape[axis]), axis)


def linear(x, scales, zeros, format, axis, block):
    """ONNX's QuantizeLinear."""
    low, high = RANGES[format]
    q = np.rint(x / spread(scales, x.shape, axis, block)) + spread(zeros, x.shape, axis, block)
    return np.clip(q, low, high).astype(int)


GRANULARITIES = [(None, None, ()), (0, None, (6,)), (1, None, (50,)), (1, 16, (6, 4)), (0, 4, (2, 50))]


@pytest.mark.parametrize("format", RANGES)
def test_quantize_and_dequantize(ctx, rng, format):
    x = (rng.standard_normal((6, 50)) * 4).astype(np.float32)
    x[rng.random(x.shape) < 0.4] = 2.5  # ties for scales that are powers of two
    low, high = RANGES[format]
    for axis, block, shape in GRANULARITIES:
        scales = np.exp2(rng.integers(-4, 1, shape)).astype(np.float32)
        zeros = rng.integers(low, high + 1, shape)
        for z in (None, zeros):
            q = tuff.quantize(ctx.array(x), scales, z, format=format, axis=axis, block_size=block)
            each = np.zeros(shape, int) if z is None else z
            wanted = linear(x, scales, each, format, axis, block)
            assert np.array_equal(q.integers(), wanted)
            back = (wanted - spread(each, x.shape, axis, block)).astype(np.float32) * spread(scales, x.shape, axis, block)
            assert np.array_equal(q.dequantize().numpy(), back)
            assert np.array_equal(tuff.dequantize(q, np.float16).numpy(), back.astype(np.float16))
            same = tuff.Quantized(format, x.shape, q.data, scales, z, axis=axis, block_size=block)
            assert np.array_equal(same.integers(), wanted)
    assert q.nbytes < x.nbytes


def test_packing(rng):
    for format, (low, high) in RANGES.items():
        for n in (0, 1, 2, 9):
            values = rng.integers(low, high + 1, n)
            stored = packed(format, values)
            assert stored.size == (n if format.endswith("8") else (n + 1) // 2)
            assert np.array_equal(unpacked(format, stored, n), values)
    assert packed("int4", np.array([1, -2, 3])).tolist() == [0xE1, 0x03]  # as ONNX packs
    with pytest.raises(ValueError, match="int4 holds -8 to 7"):
        packed("int4", np.array([8]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_products(ctx, rng, dtype):
    w = rng.standard_normal((24, 64)).astype(np.float32)
    bias = rng.standard_normal(24).astype(dtype)
    for format, m in itertools.product(RANGES, (1, 3, 20)):
        for axis, block in ((None, None), (0, None), (1, 32)):
            scales, zeros = tuff.calibrate(ctx.array(w), format=format, axis=axis, block_size=block)
            q = tuff.quantize(ctx.array(w), scales, zeros, format=format, axis=axis, block_size=block)
            a = rng.standard_normal((2, m, 64)).astype(dtype)
            got = tuff.qmatmul(ctx.array(a, dtype), q, bias=ctx.array(bias, dtype), activation="relu")
            wanted = np.maximum(a.astype(float) @ q.dequantize().numpy().astype(float).T + bias, 0)
            assert got.shape == (2, m, 24) and got.dtype == dtype
            assert np.allclose(got.numpy(), wanted, rtol=2e-3, atol=1e-4 if dtype == np.float32 else 4e-2)
    row = tuff.qmatmul(ctx.array(a[0, 0], dtype), q, alpha=2.0, out=ctx.empty(24, np.float32))
    assert np.allclose(row.numpy(), 2 * a[0, 0].astype(float) @ q.dequantize().numpy().T, rtol=1e-3, atol=4e-2)


def test_products_of_integers(ctx, rng):
    w, x = rng.standard_normal((24, 64)).astype(np.float32), rng.standard_normal((20, 64)).astype(np.float32)
    bias = rng.standard_normal(24).astype(np.float32)
    for a_format, format in itertools.product(("int8", "uint8"), repeat=2):
        for a_axis, (axis, block) in itertools.product((None, 0), ((None, None), (0, None), (1, 32))):
            a = tuff.quantize(ctx.array(x), *tuff.calibrate(ctx.array(x), format=a_format, axis=a_axis), format=a_format, axis=a_axis)
            scales, zeros = tuff.calibrate(ctx.array(w), format=format, axis=axis, block_size=block)
            q = tuff.quantize(ctx.array(w), scales, zeros, format=format, axis=axis, block_size=block)
            got = tuff.qmatmul(a, q, bias=ctx.array(bias), activation="relu")
            # Both dequantised in double precision: sums of integers are exact, so nothing but scales is rounded.
            wide = [_dequantised(one) for one in (a, q)]
            assert got.shape == (20, 24) and got.dtype == np.float32
            assert np.allclose(got.numpy(), np.maximum(wide[0] @ wide[1].T + bias, 0), rtol=2e-6, atol=2e-6 * np.abs(x).max() * 64)
    # Three axes with one scale; another type of scales and of the result.
    a = tuff.Quantized("int8", (2, 3, 64), rng.integers(-128, 128, 384).astype(np.int8), np.float16(0.5), context=ctx)
    got = tuff.qmatmul(a, q, out=ctx.empty((2, 3, 24), np.float16), alpha=0.01)
    assert np.allclose(got.numpy(), 0.01 * (a.integers() * 0.5) @ _dequantised(q).T, rtol=2e-3, atol=2e-3)
    with pytest.raises(TypeError, match="needs int8 or uint8"):
        tuff.qmatmul(a, tuff.quantize(ctx.array(w), 1.0, format="int4"))
    with pytest.raises(ValueError, match="one scale for all"):
        tuff.qmatmul(tuff.quantize(ctx.array(x), np.ones((20, 2)), axis=1, block_size=32), q)


def _dequantised(q):
    zeros = 0 if q.zero_points is None else unpacked(q.format, q.zero_points.numpy(), q.scales.size).astype(float)
    scales, numbers = q.scales.numpy().astype(float), q.integers().astype(float)
    if q.block_size is not None:
        shape = (len(numbers), -1)
        scales, zeros = (np.repeat(np.broadcast_to(one, scales.size if np.ndim(one) == 0 else np.shape(one)).reshape(shape), q.block_size, 1)
                         for one in (scales, zeros))  # fmt: skip
    elif q.axis is not None:
        scales, zeros = scales.reshape(-1, 1), np.reshape(zeros, (-1, 1))
    return (numbers - zeros) * scales


def test_calibration(ctx, rng):
    x = rng.standard_normal((8, 400)).astype(np.float32)
    x[3, 7] = 60
    scales, zeros = tuff.calibrate(ctx.array(x))
    assert zeros is None and np.isclose(scales.numpy(), 60 / 127)
    scales, zeros = tuff.calibrate(ctx.array(x), format="uint8")
    assert np.isclose(scales.numpy(), (60 - x.min()) / 255) and zeros.numpy()[0] == round(-x.min() / (60 - x.min()) * 255)
    scales, _ = tuff.calibrate(ctx.array(x), axis=0)
    assert np.allclose(scales.numpy(), np.abs(x).max(1) / 127)
    scales, _ = tuff.calibrate(ctx.array(x), format="int4", axis=1, block_size=150)
    assert scales.shape == (8, 3) and np.allclose(scales.numpy()[:, 2], np.abs(x[:, 300:]).max(1) / 7)

    def error(method, **more):
        s, z = tuff.calibrate(ctx.array(x), method=method, format="int4", **more)
        q = tuff.quantize(ctx.array(x), s, z, format="int4")
        return float(np.mean((q.dequantize().numpy() - x) ** 2))

    # With an outlier, the others keep the small numbers. Of the ranges that mse tries, minmax's is one.
    kept, _ = tuff.calibrate(ctx.array(x), method="percentile", percentile=99.0)
    assert np.isclose(kept.numpy(), np.percentile(np.abs(x), 99) / 127, rtol=1e-5)
    assert error("mse") < error("minmax")
    some, _ = tuff.calibrate(ctx.array(x), method="entropy")
    assert 2 / 127 < float(some.numpy()) < 30 / 127
    constant, _ = tuff.calibrate(ctx.zeros((4, 4)), axis=0)
    assert np.array_equal(constant.numpy(), np.ones(4))


def test_the_least_error_is_that_of_a_search_in_numpy(ctx, rng):
    x = rng.laplace(size=(5, 300)).astype(np.float32)
    scales, _ = tuff.calibrate(ctx.array(x), method="mse", format="int4", axis=0, steps=20)
    for row, got in zip(x, scales.numpy()):
        tried = (np.abs(row).max().astype(float) * (1 - 0.8 * np.arange(20) / 20) / 7).astype(np.float32)
        errors = [np.mean((np.clip(np.rint(row / s), -8, 7) * s - row) ** 2, dtype=float) for s in tried]
        assert np.isclose(errors[int(np.argmin(np.abs(tried - got)))], min(errors), rtol=1e-4)


BLOCKS = {"q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34),
          "q4_K": (256, 144), "q5_K": (256, 176), "q6_K": (256, 210)}  # fmt: skip


@pytest.mark.parametrize("format", BLOCKS)
def test_blocks_against_gguf(ctx, rng, format):
    quants = pytest.importorskip("gguf.quants")
    import gguf

    numbers, size = BLOCKS[format]
    data = rng.integers(0, 256, (6, 2 * size), np.uint8)
    blocks = data.reshape(-1, size)
    for at in (208,) if format == "q6_K" else (0, 2) if format[-1] in "1K" else (0,):
        blocks[:, at : at + 2] = rng.uniform(-0.1, 0.1, (len(blocks), 1)).astype(np.float16).view(np.uint8)
    kind = gguf.GGMLQuantizationType[format.upper()]
    wanted = quants.dequantize(data, kind)
    got = tuff.Quantized(format, (6, 2 * numbers), data, context=ctx).dequantize()
    assert np.array_equal(got.numpy(), wanted)
    a = rng.standard_normal((2, 2 * numbers)).astype(np.float32)
    product = tuff.qmatmul(ctx.array(a), tuff.Quantized(format, (6, 2 * numbers), data, context=ctx))
    assert np.allclose(product.numpy(), a @ wanted.T, rtol=1e-4, atol=1e-3)


def test_blocks_of_q8_0(ctx):
    block = np.zeros(34, np.uint8)
    block[:2] = np.array([0.5], np.float16).view(np.uint8)
    block[2:] = np.arange(-16, 16, dtype=np.int8).view(np.uint8)
    got = tuff.Quantized("q8_0", 32, block.tobytes(), context=ctx).dequantize()
    assert got.numpy().tolist() == [i / 2 for i in range(-16, 16)]


def test_misuse(ctx):
    x = ctx.ones((4, 64))
    with pytest.raises(ValueError, match="format is 'int5'"):
        tuff.quantize(x, 1.0, format="int5")
    with pytest.raises(ValueError, match="scales have shape"):
        tuff.quantize(x, [1.0, 2.0], axis=0)
    with pytest.raises(ValueError, match="block_size needs an axis"):
        tuff.quantize(x, 1.0, block_size=32)
    with pytest.raises(ValueError, match="uint4 holds 0 to 15"):
        tuff.quantize(x, 1.0, 16, format="uint4")
    with pytest.raises(TypeError, match="int32"):
        tuff.quantize(x.astype(np.int32), 1.0)
    with pytest.raises(ValueError, match="NaN or an infinity"):
        tuff.calibrate(ctx.array([1.0, np.nan]))
    q = tuff.quantize(x, 0.5)
    with pytest.raises(ValueError, match="needs .*k.* and .*n, k"):
        tuff.qmatmul(ctx.ones((2, 63)), q)
    with pytest.raises(TypeError, match="not a tuff.Quantized"):
        tuff.qmatmul(x, x)
    with pytest.raises(ValueError, match="data has 17 bytes"):
        tuff.Quantized("q4_0", 32, bytes(17), context=ctx)
    with pytest.raises(ValueError, match="multiple of 256"):
        tuff.Quantized("q4_K", 128, bytes(72), context=ctx)
    with pytest.raises(ValueError, match="within its blocks"):
        tuff.Quantized("q4_0", 32, bytes(18), 1.0, context=ctx)
