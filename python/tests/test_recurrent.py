"""Recurrent networks against a model in NumPy, of PyTorch's equations, in float64."""

import numpy as np
import pytest

import tuff
from tuff import RnnLayer

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
ORDERS = {("lstm", "torch"): "ifgo", ("lstm", "onnx"): "iofg", ("gru", "torch"): "rzn", ("gru", "onnx"): "zrn"}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(kind, order, w, x, h, c, before, clip):
    """One step of all sequences: weights w (a dict of float64 arrays of one direction)."""
    hidden = w["w"].shape[0] // GATES[kind]
    names = ORDERS.get((kind, order), "s")
    rows = {name: slice(i * hidden, (i + 1) * hidden) for i, name in enumerate(names)}
    of_x = {name: x @ w["w"][rows[name]].T + w["bias_w"][rows[name]] for name in names}
    of_h = {name: h @ w["r"][rows[name]].T + w["bias_r"][rows[name]] for name in names}
    limit = (lambda s: np.clip(s, -clip, clip)) if clip else (lambda s: s)
    if kind == "lstm":
        p = w["peepholes"].reshape(3, hidden)
        i = sigmoid(limit(of_x["i"] + of_h["i"] + p[0] * c))
        f = sigmoid(limit(of_x["f"] + of_h["f"] + p[2] * c))
        c = f * c + i * np.tanh(limit(of_x["g"] + of_h["g"]))
        h = sigmoid(limit(of_x["o"] + of_h["o"] + p[1] * c)) * np.tanh(c)
        return (h if w["projection"] is None else h @ w["projection"].T), c
    if kind == "gru":
        r, z = sigmoid(limit(of_x["r"] + of_h["r"])), sigmoid(limit(of_x["z"] + of_h["z"]))
        inner = r * of_h["n"] if before else (r * h) @ w["r"][rows["n"]].T + w["bias_r"][rows["n"]]
        return (1 - z) * np.tanh(limit(of_x["n"] + inner)) + z * h, c
    s = limit(of_x["s"] + of_h["s"])
    return (np.tanh(s) if kind == "tanh" else np.maximum(s, 0)), c


def model(kind, x, layers, h0, c0, lengths, reverse, order, before, clip):
    """x (steps, batch, input). Returns y, hn, cn."""
    steps, batch, _ = x.shape
    hn, cn = h0.copy(), c0.copy()
    row = 0
    for layer in layers:
        outs = []
        for d, weights in enumerate(layer):
            h, c = h0[row], c0[row]
            y = np.zeros((steps, batch, h.shape[1]))
            backwards = d == 1 or reverse
            for t in reversed(range(steps)) if backwards else range(steps):
                active = (t < lengths)[:, None]
                new_h, new_c = cell(kind, order, weights, x[t], h, c, before, clip)
                h, c = np.where(active, new_h, h), np.where(active, new_c, c)
                y[t] = np.where(active, h, 0)
            hn[row], cn[row] = h, c
            row += 1
            outs.append(y)
        x = np.concatenate(outs, axis=2)
    return x, hn, cn


def draw(rng, ctx, kind, sizes, directions, proj, bias, peepholes, dtype):
    """Weights for each layer: those on the device and, for each direction, those in float64."""
    inputs, hidden, count = sizes
    width, gates = proj or hidden, GATES[kind]
    device, host = [], []
    for _ in range(count):
        shapes = {"w": (gates * hidden, inputs), "r": (gates * hidden, width)}
        if bias:
            shapes |= {"bias_w": (gates * hidden,), "bias_r": (gates * hidden,)}
        if peepholes:
            shapes["peepholes"] = (3 * hidden,)
        if proj:
            shapes["projection"] = (proj, hidden)
        drawn = {name: (rng.standard_normal((directions, *shape)) * 0.5).astype(dtype) for name, shape in shapes.items()}
        zeros = {"bias_w": np.zeros(gates * hidden), "bias_r": np.zeros(gates * hidden), "peepholes": np.zeros(3 * hidden)}
        wide = [{name: value[d].astype(np.float64) for name, value in drawn.items()} for d in range(directions)]
        host.append([{"projection": None, **zeros, **weights} for weights in wide])
        omitted = directions == 1 and rng.random() < 0.5
        device.append(RnnLayer(**{n: ctx.array(v[0] if omitted else v, dtype=dtype) for n, v in drawn.items()}))
        inputs = directions * width
    return device, host


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("directions", (1, 2))
@pytest.mark.parametrize("dtype", (np.float32, np.float16))
def test_against_numpy(ctx, rng, kind, directions, dtype):
    run = {"lstm": tuff.lstm, "gru": tuff.gru}.get(kind, tuff.rnn)
    for steps, batch, inputs, hidden, layers, proj in ((5, 3, 7, 6, 2, 0), (1, 1, 3, 9, 1, 0), (6, 2, 4, 5, 2, 3), (0, 2, 3, 4, 1, 0)):
        if proj and kind != "lstm":
            continue
        for trial in range(3):
            order, before = ("torch", "onnx")[trial % 2], trial != 1
            bias, peepholes = trial != 2, kind == "lstm" and trial == 1
            device, host = draw(rng, ctx, kind, (inputs, hidden, layers), directions, proj, bias, peepholes, dtype)
            x = rng.standard_normal((steps, batch, inputs)).astype(dtype)
            rows = layers * directions
            h0 = rng.standard_normal((rows, batch, proj or hidden)).astype(dtype)
            c0 = rng.standard_normal((rows, batch, hidden)).astype(dtype)
            lengths = rng.integers(-1, steps + 2, batch).astype(np.int32) if trial else np.full(batch, steps, np.int32)
            options = {"reverse": trial == 2 and directions == 1, "clip": 0.75 if trial == 1 else 0.0}
            states = {}
            if trial == 0:
                h0[:], c0[:] = 0, 0
            else:
                states["h0"] = ctx.array(h0, dtype=dtype)
                if kind == "lstm":
                    states["c0"] = ctx.array(c0, dtype=dtype)
            if trial:
                states["lengths"] = ctx.array(lengths, dtype=np.int32)
            if kind in ("lstm", "gru"):
                options["order"] = order
            if kind == "gru":
                options["linear_before_reset"] = before
            if kind == "relu":
                options["activation"] = "relu"
            wanted = model(kind, x.astype(np.float64), host, h0.astype(np.float64), c0.astype(np.float64), lengths,
                           options["reverse"], order, before, options["clip"])
            first = trial == 1
            given = ctx.array(x.swapaxes(0, 1) if first else x, dtype=dtype)
            y, state = run(given, device, batch_first=first, **options, **states)
            y = y.numpy().swapaxes(0, 1) if first else y.numpy()
            hn, cn = state if kind == "lstm" else (state, None)
            # Sums of at most 16 products of numbers around 1, over 12 steps, of which relu amplifies errors; f16 rounds
            # the outputs of each layer.
            scale = 1 + max((np.abs(part).max() for part in wanted if part.size), default=0)
            close = {"rtol": 0, "atol": (2e-5 if dtype == np.float32 else 2e-2) * scale}
            assert y.shape == wanted[0].shape and np.allclose(y, wanted[0], **close), (kind, trial)
            assert np.allclose(hn.numpy(), wanted[1], **close), (kind, trial)
            assert cn is None or np.allclose(cn.numpy(), wanted[2], **close), (kind, trial)


def test_one_sequence(ctx, rng):
    """Without a batch, and in pieces: the state of one call is where the next one goes on."""
    device, _ = draw(rng, ctx, "lstm", (5, 8, 2), 1, 0, True, False, np.float32)
    x = rng.standard_normal((9, 5)).astype(np.float32)
    y, (hn, cn) = tuff.lstm(ctx.array(x), device)
    assert y.shape == (9, 8) and hn.shape == cn.shape == (2, 8)
    first, (h, c) = tuff.lstm(ctx.array(x[:4]), device)
    rest, (h, c) = tuff.lstm(ctx.array(x[4:]), device, h0=h, c0=c)
    assert np.allclose(np.concatenate([first.numpy(), rest.numpy()]), y.numpy(), rtol=0, atol=1e-6)
    assert np.allclose(h.numpy(), hn.numpy(), rtol=0, atol=1e-6) and np.allclose(c.numpy(), cn.numpy(), rtol=0, atol=1e-6)


def test_dropout(ctx, rng):
    """Between layers, and not after the last."""
    device, _ = draw(rng, ctx, "gru", (3, 8, 2), 2, 0, True, False, np.float32)
    x = ctx.array(rng.standard_normal((5, 4, 3)).astype(np.float32))
    y, hn = tuff.gru(x, device, dropout=0.5, generator=tuff.Generator(ctx, 7))
    first, _ = tuff.gru(x, device[0])
    dropped = tuff.Generator(ctx, 7).dropout(first, 0.5)
    wanted, _ = tuff.gru(dropped, device[1])
    assert np.array_equal(y.numpy(), wanted.numpy())
    assert not np.array_equal(y.numpy(), tuff.gru(x, device)[0].numpy())
    with pytest.raises(TypeError, match="generator"):
        tuff.gru(x, device, dropout=0.5)


def test_weights_by_name(ctx, rng):
    """The names of PyTorch's state_dict()."""
    state = {}
    for layer, inputs in ((0, 3), (1, 8)):
        for suffix in ("", "_reverse"):
            shapes = {"weight_ih": (12, inputs), "weight_hh": (12, 4), "bias_ih": (12,), "bias_hh": (12,)}
            for name, shape in shapes.items():
                state[f"{name}_l{layer}{suffix}"] = rng.standard_normal(shape).astype(np.float32)
    layers = tuff.rnn_layers(state, ctx)
    assert len(layers) == 2 and layers[1].w.shape == (2, 12, 8) and layers[0].bias_r.shape == (2, 12)
    assert np.array_equal(layers[1].r.numpy()[1], state["weight_hh_l1_reverse"])
    y, hn = tuff.gru(ctx.array(rng.standard_normal((5, 2, 3)).astype(np.float32)), layers)
    assert y.shape == (5, 2, 8) and hn.shape == (4, 2, 4)
    for broken, word in (({}, "weight_ih_l0"), ({**state, "weight_xx_l0": 1}, "weight_xx_l0")):
        with pytest.raises(ValueError, match=word):
            tuff.rnn_layers(broken, ctx)
    state.pop("bias_ih_l1_reverse")
    with pytest.raises(ValueError, match="bias_ih_l1_reverse"):
        tuff.rnn_layers(state, ctx)


def test_misuse(ctx, rng):
    def array(*shape, dtype=np.float32):
        return ctx.array(np.zeros(shape, dtype), dtype=dtype)

    layer = RnnLayer(array(1, 12, 3), array(1, 12, 4))
    x = array(5, 2, 3)
    y, hn = tuff.gru(x, layer)
    assert y.shape == (5, 2, 4)
    for error, call in (
        (TypeError, lambda: tuff.gru(np.zeros((5, 2, 3)), layer)),
        (TypeError, lambda: tuff.gru(x, layer._replace(w=array(1, 12, 3, dtype=np.float16)))),
        (ValueError, lambda: tuff.gru(array(5), layer)),
        (ValueError, lambda: tuff.gru(x, [])),
        (ValueError, lambda: tuff.gru(array(5, 2, 4), layer)),
        (ValueError, lambda: tuff.lstm(x, layer)),  # 4 gates of 3 units, and r has 4 columns
        (ValueError, lambda: tuff.gru(x, layer._replace(bias_w=array(1, 4)))),
        (ValueError, lambda: tuff.gru(x, layer, order="keras")),
        (ValueError, lambda: tuff.gru(x, layer, h0=array(1, 3, 4))),
        (ValueError, lambda: tuff.gru(x, layer, lengths=array(3, dtype=np.int32))),
        (ValueError, lambda: tuff.gru(x, layer, lengths=array(2))),
        (ValueError, lambda: tuff.rnn(x, layer, activation="gelu")),
        (tuff.TuffError, lambda: tuff.gru(x, layer, clip=-1.0)),
    ):
        with pytest.raises(error):
            call()
