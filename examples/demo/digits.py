"""Learning to read handwritten digits: a two-layer network trained from scratch.

Tuff computes the whole forward and backward pass; tuff.grad writes the latter. NumPy shuffles, prepares the images and
labels, draws the initial weights, and counts the correct answers in the downloaded scores.
"""

import math
import time

import numpy as np
import tuff
from sklearn.datasets import load_digits
from tuff import grad

import style
from progress import Progress
from style import plt

SEED = 20
HELD_OUT = 360
HIDDEN = 128
BATCH = 64
MOMENTUM = 0.9
RATE = 0.08  # of the first step; it decays to zero along half a cosine


class Network:
    """64 pixels -> 128 hidden units with ReLU -> 10 scores."""

    def __init__(self, ctx, rng):
        def layer(inputs, outputs):
            return {"w": ctx.array(rng.standard_normal((inputs, outputs)) * math.sqrt(2 / inputs)), "b": ctx.zeros(outputs)}

        self.layers = [layer(64, HIDDEN), layer(HIDDEN, 10)]
        self.optimiser = grad.SGD(self.layers, RATE, momentum=MOMENTUM)
        self.loss_and_gradients = grad.value_and_grad(self.loss)

    def scores(self, x, layers=None):
        first, second = self.layers if layers is None else layers
        return (x @ first["w"] + first["b"]).relu() @ second["w"] + second["b"]

    def loss(self, layers, x, labels):
        return grad.cross_entropy(self.scores(x, layers), labels)

    def learn(self, x, labels, rate):
        """One step of gradient descent on a batch: x (batch, 64), labels (batch,). Returns the mean cross-entropy, still on
        the device."""
        loss, gradients = self.loss_and_gradients(self.layers, x, labels)
        self.optimiser.rate = rate
        self.optimiser.step(gradients)
        return loss


def accuracy(network, x, digits):
    """Returns the fraction of correct answers and each image's answer."""
    answers = network.scores(x).numpy().argmax(axis=1)
    return float(np.mean(answers == digits)), answers


def prepare(ctx, x):
    """Runs one step and one inference on x with a temporary network, so that the kernels are compiled before the
    training is timed."""
    begin = time.monotonic()
    print("  preparing the kernels …", end="", flush=True)
    network = Network(ctx, np.random.default_rng(0))
    network.learn(x[:BATCH], ctx.zeros(BATCH, np.int64), 0.0).item()
    network.scores(x).numpy()
    print(f" {time.monotonic() - begin:.1f} s")


def run(ctx, path, quick=False):
    """Trains, draws the picture at path, and returns the held-out accuracy."""
    epochs = 12 if quick else 60
    rng = np.random.default_rng(SEED)
    data = load_digits()
    order = rng.permutation(len(data.images))
    images, digits = data.data[order] / 16, data.target[order]
    train_x, train_digits = images[HELD_OUT:], digits[HELD_OUT:]
    test_digits = digits[:HELD_OUT]
    test_x = ctx.array(images[:HELD_OUT])

    prepare(ctx, test_x)
    network = Network(ctx, rng)
    count = len(train_x) // BATCH * BATCH  # an epoch is whole batches of shuffled images
    steps = epochs * count // BATCH
    losses, accuracies = [], []
    step, begin = 0, time.monotonic()
    with Progress("training", steps) as bar:
        for epoch in range(epochs):
            shuffled = rng.permutation(len(train_x))[:count]
            x, labels = ctx.array(train_x[shuffled]), ctx.array(train_digits[shuffled])
            loss = ctx.zeros(())
            for start in range(0, count, BATCH):
                rate = RATE * 0.5 * (1 + math.cos(math.pi * step / steps))
                loss += network.learn(x[start : start + BATCH], labels[start : start + BATCH], rate)
                step += 1
            losses.append(loss.item() / (count // BATCH))  # this and the next line are an epoch's only waits
            accuracies.append(accuracy(network, test_x, test_digits)[0])
            images_per_second = (epoch + 1) * count / (time.monotonic() - begin)
            bar.update(
                step,
                f"epoch {epoch + 1}/{epochs}  loss {losses[-1]:.4f}  held-out {accuracies[-1]:.1%}  "
                f"{images_per_second:,.0f} images/s",
            )

    right, answers = accuracy(network, test_x, test_digits)
    trained, _ = accuracy(network, ctx.array(train_x), train_digits)
    wrong = int(np.sum(answers != test_digits))
    print(f"  {right:.2%} of {HELD_OUT} held-out images are read right ({wrong} wrong); of the others, {trained:.2%}")
    draw(path, images[:HELD_OUT].reshape(-1, 8, 8), test_digits, answers, losses, accuracies, len(train_x))
    return right


def draw(path, images, digits, answers, losses, accuracies, trained_on):
    """Draws held-out images and their answers on the left, with mistakes in a separate row, and curves on the right."""
    mistakes = np.flatnonzero(answers != digits)
    columns, rows = 12, 6
    figure = plt.figure(figsize=(14.5, 8.6), dpi=110)
    style.heading(
        figure,
        "Reading handwritten digits",
        f"A 64-{HIDDEN}-10 network, trained from scratch on {trained_on:,} images: "
        f"{accuracies[-1]:.1%} of {len(images)} images it never saw are read right",
        left=0.45,
        top=0.35,
    )
    sides = {"left": 0.031, "right": 0.605, "wspace": 0.12}
    grid = figure.add_gridspec(rows, columns, top=0.84, bottom=0.235, hspace=0.42, **sides)
    for place in range(rows * columns):
        show(figure.add_subplot(grid[place // columns, place % columns]), images, digits, answers, place)

    figure.text(0.031, 0.185, f"All {len(mistakes)} mistakes: answer (truth)", fontsize=11, color=style.WRONG)
    shown = mistakes[:columns]
    grid = figure.add_gridspec(1, columns, top=0.145, bottom=0.055, **sides)
    for place, index in enumerate(shown):
        show(figure.add_subplot(grid[0, place]), images, digits, answers, index)
    if len(mistakes) > columns:
        figure.text(0.605, 0.185, f"the first {columns} are shown", fontsize=9, color=style.QUIET, ha="right")

    epochs = np.arange(1, len(losses) + 1)
    axes = figure.add_axes([0.665, 0.515, 0.315, 0.325])
    axes.plot(epochs, losses, color=style.LINE, linewidth=2)
    axes.set_yscale("log")
    axes.set_title("Loss on the training images (cross-entropy)", loc="left", fontsize=11)
    axes.grid(axis="y", color="#e6ebef")
    axes.tick_params(labelbottom=False)
    low = figure.add_axes([0.665, 0.095, 0.315, 0.325], sharex=axes)
    low.plot(epochs, 100 * np.array(accuracies), color=style.SECOND, linewidth=2)
    low.axhline(95, color=style.QUIET, linewidth=1, linestyle=(0, (4, 4)))
    low.text(epochs[-1], 94.8, "95%", color=style.QUIET, fontsize=9, ha="right", va="top")
    low.set_ylim(min(90, 100 * min(accuracies[1:])), 100)
    low.set_title("Held-out images read right, %", loc="left", fontsize=11)
    low.set_xlabel("epoch")
    low.set_xlim(1, epochs[-1])
    low.grid(axis="y", color="#e6ebef")
    figure.savefig(path)
    plt.close(figure)


def show(axes, images, digits, answers, index):
    right = answers[index] == digits[index]
    colour = style.RIGHT if right else style.WRONG
    axes.imshow(images[index], cmap="gray_r", interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color="#d5dde3" if right else colour, linewidth=0.8 if right else 2)
    text = str(answers[index]) if right else f"{answers[index]} ({digits[index]})"
    axes.set_title(text, fontsize=11, color=colour, pad=3, fontweight="bold")
