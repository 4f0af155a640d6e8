"""Attention over real text: a paragraph of this project's LICENSE.

Two attention maps, both computed by tuff.attention. A map shows the weights, which attention never stores. With
one-hot values, V = I, its output is the weights themselves.

Words: a word's query and key are its letter pairs (bigrams), weighted by rarity. Words attend to words that are
spelt alike.

Letters: query i is the pair of letters (i-1, i), key j is the pair before j, (j-2, j-1), and value j is letter j.
Only the past is visible. Every position therefore looks for earlier occurrences of its pair and reads the letter
that followed: the output predicts the next letter from the text's own past.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import tuff
from matplotlib.colors import LinearSegmentedColormap, PowerNorm

import style
from style import plt

LICENSE = Path(__file__).resolve().parent.parent.parent / "LICENSE"
# What a full match adds to a score before softmax, for words and for letter pairs.
WORD_SHARPNESS = 6.0
PAIR_SHARPNESS = 18.0
# The passage on the second map: from the first of these phrases to the last occurrence of the second.
PASSAGE = ("prepare", "Derivative Works")


def paragraph():
    """Returns the text of the grant of copyright with all whitespace reduced to single spaces."""
    text = re.sub(r"\s+", " ", LICENSE.read_text(encoding="utf-8"))
    match = re.search(r"Grant of Copyright License\. (.*?) 3\. Grant of Patent License", text)
    return match.group(1).strip()


def bigrams(word):
    padded = f"^{word.lower()}$"
    return [padded[i : i + 2] for i in range(len(padded) - 1)]


def word_vectors(words):
    """Returns (words, pairs) with unit rows: how often each pair occurs in a word, times its rarity."""
    pairs = sorted({pair for word in words for pair in bigrams(word)})
    column = {pair: index for index, pair in enumerate(pairs)}
    spread = Counter(pair for word in set(words) for pair in set(bigrams(word)))
    vectors = np.zeros((len(words), len(pairs)))
    for row, word in enumerate(words):
        for pair in bigrams(word):
            vectors[row, column[pair]] += np.log((1 + len(set(words))) / spread[pair])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def weights(ctx, q, k, scale, causal):
    """Returns the attention weights (queries, keys) of vectors q and k: attention with V = I, where all three operands
    are padded with zeros to one head_dim."""
    queries, keys = len(q), len(k)
    head_dim = max(q.shape[1], keys)

    def padded(rows):
        return ctx.array(np.pad(rows, [(0, 0), (0, head_dim - rows.shape[1])]))

    return tuff.attention(padded(q), padded(k), padded(np.eye(keys)), scale=scale, causal=causal).numpy()[:, :keys]


def pair_vectors(codes, letters):
    """Returns (positions, 2 * letters): one-hot vectors of each position's letter and of the previous one."""
    one_hot = np.eye(letters)[codes]
    before = np.vstack([np.zeros((1, letters)), one_hot[:-1]])
    return np.hstack([one_hot, before]) / np.sqrt(2)


def predict_letters(ctx, text):
    """Runs the letter attention over a text. Returns the fraction of letters predicted correctly, and the query and key
    vectors."""
    alphabet = sorted(set(text))
    codes = np.array([alphabet.index(letter) for letter in text])
    pairs = pair_vectors(codes, len(alphabet))
    # Query i is the pair that ends at i, key j the pair that ends at j - 1.
    q, k = pairs, np.vstack([np.zeros((1, pairs.shape[1])), pairs[:-1]])
    v = np.pad(np.eye(len(alphabet))[codes], [(0, 0), (0, pairs.shape[1] - len(alphabet))])
    output = tuff.attention(*(ctx.array(part) for part in (q, k, v)), scale=PAIR_SHARPNESS, causal="top_left")
    foretold = output.numpy()[:, : len(alphabet)].argmax(axis=1)
    half = len(codes) // 2  # only predictions in the second half count
    return np.mean(foretold[half:-1] == codes[half + 1 :]), q, k


def run(ctx, path, quick=False):
    """Computes both maps and draws the picture at path."""
    text = paragraph()
    words = re.findall(r"[A-Za-z-]+", text)
    vectors = word_vectors(words)
    by_word = weights(ctx, vectors, vectors, WORD_SHARPNESS, False)

    passage = text[text.index(PASSAGE[0]) : text.rindex(PASSAGE[1]) + len(PASSAGE[1])]
    _, q, k = predict_letters(ctx, passage)
    by_letter = weights(ctx, q, k, PAIR_SHARPNESS, True)
    whole = re.sub(r"\s+", " ", LICENSE.read_text(encoding="utf-8")).strip()[: 1500 if quick else 4000]
    share, _, _ = predict_letters(ctx, whole)

    relations = strongest(words, by_word)
    examples = [f"“{one}” attends to “{other}” ({weight:.0%})" for one, other, weight in relations[:3]]
    print("  " + ", ".join(examples))
    foretold = f"{share:.0%} of the second half of the LICENSE's first {len(whole):,} letters"
    print(f"  letters foretold from the text's own past: {foretold}")
    draw(path, words, by_word, passage, by_letter, relations, foretold)


def strongest(words, by_word):
    """Returns (word, other word, weight) for pairs of different words, strongest first."""
    found = {}
    for i, one in enumerate(words):
        for j, other in enumerate(words):
            key = tuple(sorted((one.lower(), other.lower())))
            if key[0] != key[1] and by_word[i, j] > found.get(key, ("", "", 0))[2]:
                found[key] = (one, other, float(by_word[i, j]))
    return sorted(found.values(), key=lambda entry: -entry[2])


COLOURS = LinearSegmentedColormap.from_list("ink", ["#ffffff", "#fbe3c0", "#f2a65a", "#c8402f", "#5b1a5e", "#150a26"])


def draw(path, words, by_word, passage, by_letter, relations, foretold):
    """Draws the word map on the left and the letter map on the right. Positions are in inches from the upper left."""
    width, height, side = 28.4, 16.0, 12.2
    figure = plt.figure(figsize=(width, height), dpi=100)
    style.heading(
        figure,
        "What attends to what in the LICENSE, “Grant of Copyright License”",
        "A row is a query, a column a key; the weights of a row sum to one.",
        left=0.5,
        top=0.35,
        gap=0.3,
    )

    def panel(left, title, note, weights_, labels, **options):
        axes = figure.add_axes([left / width, 1 - (2.65 + side) / height, side / width, side / height])
        image = heat_map(axes, weights_, labels, **options)
        figure.text(left / width, 1 - 1.3 / height, title, fontsize=16, fontweight="bold", va="top")
        figure.text(left / width, 1 - (2.65 + side + 0.2) / height, note, fontsize=12.5, va="top", linespacing=1.6)
        return image

    pairs = [f"“{one}” → “{other}” {weight:.0%}" for one, other, weight in relations if weight >= 0.01]
    note = "Strongest between different words:  " + ",  ".join(pairs[:3]) + ",\n" + ",  ".join(pairs[3:7])
    image = panel(1.6, "Words attend to words that are spelt alike", note, by_word, words, size=9.5, rotation=90)
    marks = [letter if letter != " " else "·" for letter in passage]
    note = (
        "A diagonal streak is a phrase that came before: there the next letter is known. Read as a prediction,\n"
        f"the same attention foretells {foretold}."
    )
    title = "Each pair of letters looks for what came after the same pair before"
    panel(15.3, title, note, by_letter, marks, size=7.5, rotation=0, family="DejaVu Sans Mono")

    place = figure.add_axes([(width - 4.0) / width, 1 - 0.62 / height, 3.1 / width, 0.16 / height])
    bar = figure.colorbar(image, cax=place, orientation="horizontal")
    bar.set_ticks([0, 0.01, 0.1, 0.3, 0.6, 1], labels=["0", "1%", "10%", "30%", "60%", "100%"])
    bar.outline.set_edgecolor("#c5ced6")
    bar.ax.set_title("weight", fontsize=10, loc="left", pad=4, color=style.QUIET)
    figure.savefig(path)
    plt.close(figure)


def heat_map(axes, weights_, labels, size, rotation, family="DejaVu Sans"):
    image = axes.imshow(weights_, cmap=COLOURS, norm=PowerNorm(0.5, 0, 1), aspect="auto", interpolation="nearest")
    places = range(len(labels))
    axes.set_xticks(places, labels, rotation=rotation, fontsize=size, family=family)
    axes.set_yticks(places, labels, fontsize=size, family=family)
    axes.tick_params(length=0, pad=3, top=True, bottom=False, labeltop=True, labelbottom=False, labelcolor=style.INK)
    axes.set_xticks(np.arange(0.5, len(labels)), minor=True)
    axes.set_yticks(np.arange(0.5, len(labels)), minor=True)
    axes.tick_params(which="minor", length=0)
    axes.grid(which="minor", color="#eef1f4", linewidth=0.5)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#c5ced6")
    return image
