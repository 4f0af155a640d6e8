"""Tests of the parts that need no device: tokens, files, paragraphs. Run by pytest."""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import documents
import model_files
from tokenizer import Tokenizer, words_of

TOKENS = "[PAD] [UNK] [CLS] [SEP] un ##aff ##able want ##want ##ed wa , ! $ naive 中 a b ##b".split()
VOCABULARY = {token: index for index, token in enumerate(TOKENS)}


def pieces(text, max_tokens=512):
    ids = Tokenizer(VOCABULARY, max_tokens)(text)
    assert ids[0] == VOCABULARY["[CLS]"] and ids[-1] == VOCABULARY["[SEP]"]
    return [TOKENS[index] for index in ids[1:-1]]


@pytest.mark.parametrize(
    "text, words",
    [
        ("Hello,  World!", ["hello", ",", "world", "!"]),
        ("naïve Ünïcode", ["naive", "unicode"]),
        ("a\u200bb\tc\u00a0d\x00e", ["ab", "c", "de"]),
        ("don't 3+4=$7", ["don", "'", "t", "3", "+", "4", "=", "$", "7"]),
        ("中文text“quoted”", ["中", "文", "text", "“", "quoted", "”"]),
        ("", []),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


def test_the_longest_piece_comes_first():
    assert pieces("UNWANTED, unaffable!") == ["un", "##want", "##ed", ",", "un", "##aff", "##able", "!"]
    assert pieces("wantx") == ["[UNK]"]  # the whole word, because a part is unknown
    assert pieces("b" * 101) == ["[UNK]"] and len(pieces("b" * 100)) == 100
    assert pieces("[SEP]") == ["[UNK]"] * 3  # text never maps to a special token
    assert pieces("a b " * 50, max_tokens=8) == ["a", "b"] * 3


def test_safetensors_come_back(tmp_path):
    rng = np.random.default_rng(1)
    tensors = {"one": rng.standard_normal((3, 4)).astype(np.float32), "none": np.zeros((0, 2), np.float32)}
    tensors["two"] = np.float32(rng.standard_normal(5))
    model_files.write_safetensors(tmp_path / "x", tensors)
    found = model_files.read_safetensors(tmp_path / "x")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


def header(entry, data=b"\0" * 16):
    text = json.dumps(entry).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"{not",
        header({"x": {"dtype": "F32", "shape": [4]}}),
        header({"x": {"dtype": "Q4", "shape": [4], "data_offsets": [0, 16]}}),
        header({"x": {"dtype": "F32", "shape": [5], "data_offsets": [0, 16]}}),
        header({"x": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}),
    ],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(model_files.ModelError, match="safetensors"):
        model_files.read_safetensors(tmp_path / "x")


def test_a_model_that_lacks_something_says_what(tmp_path):
    with pytest.raises(model_files.ModelError, match="no model"):
        model_files.Model(tmp_path)
    folder = model_files.write_tiny_model(tmp_path / "tiny")
    model = model_files.Model(folder)
    assert model.max_tokens == 96 and model["embeddings.word_embeddings.weight"].shape[1] == 64
    with pytest.raises(model_files.ModelError, match="no tensor pooler"):
        model["pooler"]


def test_paragraphs(tmp_path):
    (tmp_path / "x.md").write_text(
        "# Title\nThe *first* paragraph has [a link](x.md)\nand `code` in it.\n\n```sh\nnot this one at all\n```\n"
        "## Second one\n- an item with more than six words\n- short\n\n| a | b |\n|---|---|\n"
        "| a row with a few | words, more than ten of them, in its cells |\n| 1 | 2 |\n"
    )
    found = documents.paragraphs(tmp_path / "x.md", "x.md")
    assert [(one.heading, one.text) for one in found] == [
        ("Title", "The first paragraph has a link and code in it."),
        ("Second one", "an item with more than six words"),
        ("Second one", "a row with a few: words, more than ten of them, in its cells"),
    ]
