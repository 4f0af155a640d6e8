#!/usr/bin/env python3
"""Trains a small transformer, letter by letter, on this project's pages, and lets it write.

    python3 examples/transformer/transformer.py [--steps N] [--text FILE] [--out DIR] [--backend vulkan|host]

Forward, backward and Adam run on the device; tuff.grad writes the backward pass. The picture shows the loss, and what the
model wrote on the way.
"""

import argparse
import math
import sys
import textwrap
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "demo"))  # the style of pictures
try:
    import tuff
except ModuleNotFoundError:  # not installed: the package of this checkout
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    import tuff
from tuff import grad

SEED = 11
LENGTH, WIDTH, HEADS, LAYERS, BATCH = 64, 96, 4, 3, 16
RATE, WARM = 3e-3, 50  # the rate rises over the first steps, then falls along half a cosine
KNOWN = "\n abcdefghijklmnopqrstuvwxyz.,:;'\"()-0123456789"


class Model:
    """Letters -> embeddings with positions -> blocks of attention and a layer of GELU -> scores of the next letter."""

    def __init__(self, ctx, rng):
        def matrix(rows, columns, scale=1.0):
            return ctx.array(rng.standard_normal((rows, columns)) * scale / math.sqrt(rows))

        letters = len(KNOWN)
        self.ctx = ctx
        self.parameters = {
            "letters": ctx.array(rng.standard_normal((letters, WIDTH)) * 0.1),
            "places": ctx.array(rng.standard_normal((LENGTH, WIDTH)) * 0.1),
            "last": ctx.ones(WIDTH),
            "blocks": [
                {
                    "before": ctx.ones(WIDTH),
                    "qkv": matrix(WIDTH, 3 * WIDTH),
                    "joined": matrix(WIDTH, WIDTH, 1 / math.sqrt(2 * LAYERS)),
                    "between": ctx.ones(WIDTH),
                    "up": matrix(WIDTH, 4 * WIDTH),
                    "down": matrix(4 * WIDTH, WIDTH, 1 / math.sqrt(2 * LAYERS)),
                }
                for _ in range(LAYERS)
            ],
        }

    def scores(self, parameters, letters):
        """letters (batch, length) -> scores (batch, length, letters) of each next one."""
        batch, length = letters.shape
        x = tuff.embedding(parameters["letters"], letters) + parameters["places"][:length]
        for block in parameters["blocks"]:
            qkv = tuff.rms_norm(x, block["before"]) @ block["qkv"]
            q, k, v = (qkv[..., at * WIDTH : (at + 1) * WIDTH].copy().reshape(batch, length, HEADS, WIDTH // HEADS) for at in range(3))
            x = x + tuff.attention(q, k, v, causal=True, layout="bshd").reshape(batch, length, WIDTH) @ block["joined"]
            x = x + tuff.gelu(tuff.rms_norm(x, block["between"]) @ block["up"]) @ block["down"]
        return tuff.rms_norm(x, parameters["last"]) @ parameters["letters"].T

    def loss(self, parameters, letters, following):
        return grad.cross_entropy(self.scores(parameters, letters), following)

    def write(self, start, count, rng, temperature=0.7):
        """Continues a text, one letter at a time."""
        letters = [KNOWN.index(letter) for letter in start]
        for _ in range(count):
            seen = letters[-LENGTH:]
            row = np.zeros((1, LENGTH), np.int32)  # what comes later is not seen: one shape for all
            row[0, : len(seen)] = seen
            scores = self.scores(self.parameters, self.ctx.array(row))[0, len(seen) - 1].numpy() / temperature
            chances = np.exp(scores - scores.max())
            letters.append(int(rng.choice(len(KNOWN), p=chances / chances.sum())))
        return "".join(KNOWN[letter] for letter in letters)


def read(path):
    """The text as numbers of letters: without capitals, and with spaces for what is not known."""
    files = [path] if path else sorted((HERE.parent.parent / "docs").glob("*.md"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files).lower()
    numbers = np.array([KNOWN.find(letter) for letter in text], np.int32)
    numbers[numbers < 0] = KNOWN.index(" ")
    space = numbers == KNOWN.index(" ")
    return numbers[~(space & np.roll(space, 1))]  # one space for several


def train(ctx, text, steps):
    """Returns the model, the losses of all steps, and (step, what it wrote)."""
    rng = np.random.default_rng(SEED)
    model = Model(ctx, rng)
    adam = grad.Adam(model.parameters, RATE, betas=(0.9, 0.99), weight_decay=0.01)
    step = grad.value_and_grad(model.loss)
    losses, written = [], []
    begin = time.monotonic()
    for at in range(steps):
        first = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        rows = np.stack([text[start : start + LENGTH + 1] for start in first])
        value, gradients = step(model.parameters, ctx.array(rows[:, :-1].copy()), ctx.array(rows[:, 1:].copy()))
        adam.rate = RATE * min(1, (at + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * at / steps))
        adam.step(grad.clip_norm(gradients, 1.0))
        losses.append(value)
        if len(losses) % 25 == 0 or at == steps - 1:
            losses = [one if isinstance(one, float) else one.item() for one in losses]  # waits
            each = (time.monotonic() - begin) / (at + 1)
            print(f"  step {at + 1:5}/{steps}  loss {np.mean(losses[-25:]):.3f}  {each * 1e3:.0f} ms each", flush=True)
        if at + 1 in (steps // 8, steps // 2, steps):
            written.append((at + 1, model.write("the ", 150, np.random.default_rng(1))))
    return model, losses, written


def draw(path, losses, written, letters):
    import style
    from style import plt

    figure = plt.figure(figsize=(12.5, 6.4), dpi=110)
    style.heading(figure, "A transformer learns to write", f"Trained letter by letter on {letters:,} letters of this project's pages", left=0.45, top=0.35)
    axes = figure.add_axes([0.06, 0.1, 0.4, 0.66])
    axes.plot(np.arange(1, len(losses) + 1), losses, color=style.LINE, alpha=0.25, linewidth=1)
    window = max(1, min(25, len(losses) // 4))
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    axes.plot(np.arange(window, len(losses) + 1), smooth, color=style.LINE, linewidth=2)
    axes.axhline(math.log(len(KNOWN)), color=style.QUIET, linewidth=1, linestyle=(0, (4, 4)))
    axes.text(len(losses), math.log(len(KNOWN)), "guessing", color=style.QUIET, fontsize=9, ha="right", va="bottom")
    axes.set_title("Loss (cross-entropy of the next letter)", loc="left", fontsize=11)
    axes.set_xlabel("step")
    axes.grid(axis="y", color="#e6ebef")
    top = 0.76
    for step, text in written:
        figure.text(0.51, top, f"after {step} steps", fontsize=11, color=style.SECOND, fontweight="bold", va="top")
        figure.text(0.51, top - 0.05, "\n".join(textwrap.wrap(text, 62)), fontsize=9.5, family="DejaVu Sans Mono", va="top")
        top -= 0.24
    figure.savefig(path)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description="Trains a small transformer on this project's pages.")
    parser.add_argument("--steps", type=int, default=800, help="steps of Adam (800)")
    parser.add_argument("--text", type=Path, help="a text to learn from; otherwise the pages in docs/")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture goes (out)")
    parser.add_argument("--backend", choices=["vulkan", "host"], default="vulkan", help="vulkan, or the slow reference")
    options = parser.parse_args()
    text = read(options.text)
    if options.steps < 8 or len(text) < 10 * LENGTH:
        parser.error("needs at least 8 steps, and a text of 640 letters")
    options.out.mkdir(parents=True, exist_ok=True)
    with tuff.Context(backend=options.backend) as ctx:
        ctx.set_limits(wait_milliseconds=600_000)
        print(f"Tuff {tuff.__version__} on {ctx.device.name}: {len(text):,} letters")
        _, losses, written = train(ctx, text, options.steps)
    draw(options.out / "transformer.png", losses, written, len(text))
    print(written[-1][1])
    last = float(np.mean(losses[-8:]))
    print(f"The loss fell from {losses[0]:.2f} to {last:.2f}; {options.out / 'transformer.png'}")
    if not last < losses[0] - 0.5:
        sys.exit("error: the model has not learnt")


if __name__ == "__main__":
    main()
