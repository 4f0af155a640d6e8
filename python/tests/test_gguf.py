"""GGUF files: what a writer of our own, and the package gguf where it is installed, have written; and damaged ones."""

import math
import struct

import numpy as np
import pytest

import tuff
from tuff.gguf import File, FormatError

F32, F16, Q4_0, Q8_0, Q4_K, BF16, I8, I16 = 0, 1, 2, 8, 12, 30, 24, 25
CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def value(kind, what):
    if kind == 8:
        return text(what)
    if kind == 9:
        inner, elements = what
        return struct.pack("<IQ", inner, len(elements)) + b"".join(value(inner, x) for x in elements)
    return struct.pack("<" + CODES[kind], what)


def made(metadata=(), tensors=(), version=3, alignment=32, magic=b"GGUF", counts=None):
    """A file: metadata of (key, type, value), tensors of (name, sizes from the innermost, type, bytes[, offset])."""
    head = magic + struct.pack("<IQQ", version, *(counts or (len(tensors), len(metadata))))
    for key, kind, what in metadata:
        head += text(key) + struct.pack("<I", kind) + value(kind, what)
    data = b""
    for name, sizes, kind, held, *offset in tensors:
        data += bytes(-len(data) % alignment)
        head += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, *(offset or [len(data)]))
        data += held
    return head + bytes(-len(head) % alignment) + data


@pytest.fixture
def opened(tmp_path):
    files = []

    def write(content):
        path = tmp_path / f"{len(files)}.gguf"
        path.write_bytes(content)
        files.append(File(path))
        return files[-1]

    yield write
    for file in files:
        file.close()


def test_metadata(opened):
    rows = [(f"v{kind}", kind, what) for kind, what in {0: 200, 1: -3, 2: 60000, 3: -3, 4: 2**32 - 1, 5: -9, 6: 0.5, 7: True, 10: 2**64 - 1, 11: -(2**63), 12: 1e300}.items()]
    rows += [("text", 8, "Grüße"), ("bytes", 8, b"\xff\x00"), ("numbers", 9, (5, [1, -2, 3])), ("flags", 9, (7, [True, False]))]
    rows += [("texts", 9, (8, ["a", "", "ü"])), ("nested", 9, (9, [(5, [1]), (8, ["x"])])), ("none", 9, (12, []))]
    file = opened(made(rows))
    for key, kind, what in rows[:12]:
        assert file.metadata[key] == what and type(file.metadata[key]) is type(what), key
    assert file.metadata["bytes"].encode("utf-8", "surrogateescape") == b"\xff\x00"
    assert file.metadata["numbers"].tolist() == [1, -2, 3] and file.metadata["numbers"].dtype == np.int32
    assert file.metadata["flags"].tolist() == [True, False] and file.metadata["flags"].dtype == bool
    assert file.metadata["texts"] == ["a", "", "ü"]
    assert file.metadata["nested"][0].tolist() == [1] and file.metadata["nested"][1] == ["x"]
    assert file.metadata["none"].size == 0
    assert (file.version, file.alignment, len(file)) == (3, 32, 0)
    assert opened(made(version=2)).version == 2


@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_tensors(ctx, rng, opened, alignment):
    matrix = rng.standard_normal((3, 5)).astype(np.float32)
    halves = rng.standard_normal((2, 1, 4)).astype(np.float16)
    blocks = rng.integers(0, 256, (2, 2, 18), dtype=np.uint8)
    blocks[..., :2] = np.frombuffer(np.float16(0.25).tobytes(), np.uint8)
    rows = [
        ("matrix", (5, 3), F32, matrix.tobytes()),
        ("halves", (4, 1, 2), F16, halves.tobytes()),
        ("blocks", (64, 2), Q4_0, blocks.tobytes()),
        ("bf16", (3,), BF16, b"\x80\x3f\x00\x40\x40\xc0"),
        ("empty", (0, 7), F32, b""),
        ("empty and large", (0, 2**60), F32, b""),
        ("scalar", (), F32, np.float32(7).tobytes()),
        ("shorts", (2,), I16, np.array([-1, 300], "<i2").tobytes()),
        ("unread", (256,), 10, bytes(84)),
        ("unknown", (5,), 77, b"12345"),
    ]
    file = opened(made([("general.alignment", 4, alignment)], rows, alignment=alignment))
    assert list(file) == [row[0] for row in rows]
    assert [file[name].offset % alignment for name in file] == [0] * len(rows)
    for name, wanted in (("matrix", matrix), ("halves", halves), ("shorts", np.array([-1, 300], np.int16)), ("scalar", np.float32(7)), ("empty", np.zeros((7, 0)))):
        tensor = file[name]
        assert tensor.shape == np.shape(wanted) and tensor.nbytes == np.asarray(wanted, tensor.numpy().dtype).nbytes
        assert np.array_equal(tensor.numpy(), wanted) and not tensor.numpy().flags.writeable
        loaded = tensor.to(ctx)
        assert loaded.dtype == tensor.numpy().dtype and np.array_equal(loaded.numpy(), wanted)
    assert np.array_equal(file["bf16"].to(ctx, np.float32).numpy(), np.array([1, 2, -3], np.float32))
    large = file["empty and large"]
    assert large.numpy().shape == large.to(ctx).shape == (2**60, 0)
    q = file["blocks"].to(ctx)
    assert isinstance(q, tuff.Quantized) and q.shape == (2, 64) and np.array_equal(q.data.numpy(), blocks.ravel())
    nibbles = blocks[..., 2:].astype(int)
    wanted = (np.concatenate([nibbles & 15, nibbles >> 4], -1) - 8).reshape(2, 64) * np.float32(0.25)
    assert np.array_equal(q.dequantize().numpy(), wanted)
    assert np.array_equal(file["blocks"].to(ctx, np.float16).numpy(), wanted)
    a = rng.integers(-4, 4, (3, 64)).astype(np.float32)
    assert np.array_equal(tuff.qmatmul(ctx.array(a), q).numpy(), a @ wanted.T)  # exact: small multiples of 1/4
    for name, kind in (("unread", "Q2_K"), ("unknown", "type 77")):
        with pytest.raises(TypeError, match=f"{name} is of {kind}, and Tuff reads F32, .*Q6_K"):
            file[name].to(ctx)
        with pytest.raises(TypeError, match=kind):
            file[name].numpy()
    assert file["unread"].data.size == 84
    with pytest.raises(ValueError, match="how many bytes"):
        file["unknown"].data  # noqa: B018
    with pytest.raises(TypeError, match="Q4_0"):
        file["blocks"].numpy()
    with pytest.raises(KeyError):
        file["no such tensor"]


def test_bf16_array(ctx, opened):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    file = opened(made(tensors=[("x", (3,), BF16, b"\x80\x3f\x00\x40\x40\xc0")]))
    loaded = file["x"].to(ctx)
    assert loaded.dtype == ml_dtypes.bfloat16 and loaded.numpy().tolist() == [1, 2, -3]


def test_closing(ctx, opened):
    file = opened(made(tensors=[("x", (3,), F32, np.arange(3, dtype=np.float32).tobytes())]))
    tensor, view = file["x"], file["x"].numpy()
    with file:
        pass
    assert view.tolist() == [0, 1, 2]
    for use in (tensor.numpy, lambda: tensor.data, lambda: tensor.to(ctx)):
        with pytest.raises(ValueError, match="closed"):
            use()
    file.close()


X = ("x", (4,), F32, bytes(16))
DAMAGED = {
    "nothing": (b"", "empty"),
    "other": (b"not a model at all, but long enough", "not with GGUF"),
    "short": (b"GG", "magic number at 0 needs 4 bytes, the file has 2"),
    "version 1": (made(version=1), "version 1, and Tuff reads 2 and 3"),
    "version 4": (made(version=4), "version 4"),
    "big-endian": (made(version=3 << 24), "big-endian"),
    "cut in the header": (made()[:20], "number of values"),
    "many values": (made(counts=(0, 2**61)), "values of metadata at 24 needs"),
    "many tensors": (made(counts=(2**63, 0)), "9223372036854775808 tensors at 24 needs"),
    "long key": (made()[:8] + struct.pack("<QQ", 0, 1) + struct.pack("<QI", 2**64 - 1, 0) + bytes(9), "text of 18446744073709551615 bytes of value 0"),
    "key not UTF-8": (made([(b"\xff", 0, 1)]), "not UTF-8"),
    "key twice": (made([("k", 0, 1), ("k", 0, 2)]), '"k" is there twice'),
    "type of a value": (made([("k", 0, 1)]).replace(b"k\0\0\0\0", b"k\x0d\0\0\0"), '"k" is of type 13, which is not known'),
    "a bool of 2": (made([("k", 7, True)]).replace(b"k\7\0\0\0\1", b"k\7\0\0\0\2"), "neither 0 nor 1"),
    "bools of 2": (made([("k", 9, (7, [True]))]).replace(b"\7\0\0\0\1\0\0\0\0\0\0\0\1", b"\7\0\0\0\1\0\0\0\0\0\0\0\2"), "neither 0 nor 1"),
    "type of elements": (made([("k", 9, (0, [1]))]).replace(b"k\x09\0\0\0\0", b"k\x09\0\0\0\x63"), "elements of type 99"),
    "long array": (made([("k", 9, (12, []))])[:-8].replace(struct.pack("<IQ", 12, 0), struct.pack("<IQ", 12, 2**61)), 'array of 2305843009213693952 numbers of metadata "k"'),
    "many texts": (made([("k", 9, (8, []))]).replace(struct.pack("<IQ", 8, 0), struct.pack("<IQ", 8, 2**61)), "array of 2305843009213693952 elements"),
    "alignment 3": (made([("general.alignment", 4, 3)]), "general.alignment 3, not a power of two"),
    "alignment 0": (made([("general.alignment", 4, 0)]), "general.alignment 0"),
    "alignment of text": (made([("general.alignment", 8, "32")]), "general.alignment '32'"),
    "axes": (made(tensors=[("x", (1,) * 5, F32, bytes(4))]), '"x" has 5 axes, at most 4'),
    "tensor twice": (made(tensors=[X, X]), '"x" is there twice'),
    "offset": (made(tensors=[(*X, 4)]), '"x" has the offset 4, not a multiple of the alignment 32'),
    "offset beyond the end": (made(tensors=[(*X, 2**63)]), "and the file has 80"),
    "cut": (made(tensors=[X])[:-1], r"shape \(4,\) has 16 bytes from 64, and the file has 79"),
    "large": (made(tensors=[("x", (2**40, 2**40, 2**40), F16, b"")]), "has 2658455991569831745807614120560689152 bytes"),
    "large and empty": (made(tensors=[("x", (2**63, 0), I8, b"")]), r"shape \(0, 9223372036854775808\), larger than an array"),
    "large and empty, of f32": (made(tensors=[("x", (0, 2**61), F32, b"")]), r"of F32 has the shape \(2305843009213693952, 0\), larger"),
    "large and empty, of blocks": (made(tensors=[("x", (2**62, 0, 2), Q8_0, b"")]), "of Q8_0 has the shape .*, larger"),
    "rows of parts of blocks": (made(tensors=[("x", (33,), Q8_0, bytes(68))]), "rows of 33 numbers, and Q8_0 has blocks of 32"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged(tmp_path, name):
    content, message = DAMAGED[name]
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        File(path)
    assert str(path) in str(error.value)


def test_deep_arrays(tmp_path):
    def nested(depth):
        return (5, [1]) if depth == 0 else (9, [nested(depth - 1)])

    path = tmp_path / "deep.gguf"
    path.write_bytes(made([("k", 9, nested(7))]))
    assert File(path).metadata["k"][0][0][0][0][0][0][0].tolist() == [1]
    deep = made([("k", 9, (9, []))])
    path.write_bytes(deep.replace(struct.pack("<IQ", 9, 0), struct.pack("<IQ", 9, 1) * 5000 + bytes(12)))
    with pytest.raises(FormatError, match="deeper than 8"):
        File(path)


def test_misuse(tmp_path):
    with pytest.raises(FileNotFoundError):
        File(tmp_path / "absent.gguf")
    with pytest.raises(TypeError):
        File(None)
    with pytest.raises(IsADirectoryError):
        File(tmp_path)


def test_fuzz(tmp_path, rng):
    """Whatever the bytes, a file opens and each tensor lies within it, or it is refused."""
    metadata = [("general.architecture", 8, "test"), ("general.alignment", 4, 32), ("n", 4, 7), ("list", 9, (8, ["a", "bc"])), ("deep", 9, (9, [(7, [True]), (12, [0.5])]))]
    tensors = [X, ("q", (256, 2), Q4_K, bytes(288)), ("h", (2, 3), F16, bytes(12))]
    whole = made(metadata, tensors)
    head = whole.index(b"h\2\0\0\0") + 40
    path = tmp_path / "fuzzed.gguf"
    extremes = [0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
    refused = 0
    for i in range(3000):
        content = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(0, head)
            if i % 3 == 0:
                content[at] ^= 1 << rng.integers(0, 8)
            elif i % 3 == 1:
                content[at] = rng.integers(0, 256)
            else:
                content[at : at + 8] = struct.pack("<Q", extremes[rng.integers(0, len(extremes))])
        if i % 10 == 0:
            content = content[: rng.integers(0, len(content))]
        path.write_bytes(content)
        try:
            with File(path) as file:
                for tensor in file.values():
                    if tensor.nbytes is None:
                        continue
                    assert tensor.data.size == tensor.nbytes and 0 <= tensor.offset <= tensor.offset + tensor.nbytes <= len(content)
                    if tensor.type == "F32":
                        assert tensor.numpy().size == math.prod(tensor.shape)
        except FormatError:
            refused += 1
    assert 1000 < refused < 3000


def test_against_the_package(ctx, rng, tmp_path):
    """Files that it has written, and numbers as it dequantises them."""
    gguf = pytest.importorskip("gguf")
    quants = pytest.importorskip("gguf.quants")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_token_list(["<s>", "a", "é"])
    writer.add_token_scores([0.0, -1.5, 2.0])
    writer.add_array("shape", [1, 2, 3])
    writer.add_custom_alignment(64)
    values = {"f32": rng.standard_normal((3, 7)).astype(np.float32), "f16": rng.standard_normal((2, 3, 4)).astype(np.float16)}
    for name, held in values.items():
        writer.add_tensor(name, held)
    formats = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16"]
    weights = rng.standard_normal((6, 256)).astype(np.float32)
    for name in formats:
        kind = gguf.GGMLQuantizationType[name]
        values[name] = quants.quantize(weights, kind)
        writer.add_tensor(name, values[name], raw_dtype=kind)
    for name in ("Q4_K", "Q5_K", "Q6_K"):  # which it can't quantise to: any bytes, with finite scales
        kind = gguf.GGMLQuantizationType[name]
        blocks = rng.integers(0, 256, (6, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        scale = np.frombuffer(np.array([0.01, 0.02], np.float16).tobytes(), np.uint8)
        if name == "Q6_K":
            blocks[:, -2:] = scale[:2]
        else:
            blocks[:, :4] = scale
        values[name] = blocks
        writer.add_tensor(name, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    with File(path) as file:
        assert file.metadata["general.architecture"] == "llama" and file.metadata["llama.block_count"] == 2
        assert file.metadata["tokenizer.ggml.tokens"] == ["<s>", "a", "é"]
        assert file.metadata["tokenizer.ggml.scores"].tolist() == [0.0, -1.5, 2.0]
        assert file.metadata["shape"].tolist() == [1, 2, 3]
        assert file.alignment == 64 and list(file) == list(values) == list(theirs)
        for name, tensor in file.items():
            assert tensor.shape == tuple(theirs[name].shape[::-1].tolist()) and tensor.type == theirs[name].tensor_type.name.upper()
            assert np.array_equal(tensor.data, theirs[name].data.view(np.uint8).ravel())
            if name in ("f32", "f16"):
                assert np.array_equal(tensor.to(ctx).numpy(), values[name])
                continue
            wanted = quants.dequantize(values[name], gguf.GGMLQuantizationType[name])
            # Sums of a product and a minimum are rounded once or twice.
            got = tensor.to(ctx, np.float32).numpy()
            assert got.shape == (6, 256)
            assert np.all(np.abs(got - wanted) <= 2.0**-22 * (np.abs(wanted) + 1)), name
