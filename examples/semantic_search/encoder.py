"""A BERT encoder that computes sentence vectors with Tuff's operations alone."""

import math

import numpy as np
import tuff

STEP = 16  # texts are padded to a multiple of this many tokens: fewer shapes need fewer kernels


class _Layer:
    """One block's weights. Query, key and value weights are stacked, so that one call computes all three."""

    def __init__(self, ctx, model, index, dtype):
        def name(part):
            return f"encoder.layer.{index}.{part}"

        def upload(part, kind=dtype):
            return ctx.array(model[name(part)], kind)

        parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
        self.qkv = ctx.array(np.stack([model[name(f"{part}.weight")] for part in parts]), dtype)
        self.qkv_bias = ctx.array(np.stack([model[name(f"{part}.bias")][None] for part in parts]), dtype)
        self.joined, self.joined_bias = upload("attention.output.dense.weight"), upload("attention.output.dense.bias")
        self.wide, self.wide_bias = upload("intermediate.dense.weight"), upload("intermediate.dense.bias")
        self.narrow, self.narrow_bias = upload("output.dense.weight"), upload("output.dense.bias")
        # Normalisations take float32 weights, whatever the type of the rest.
        self.norm1 = [upload(f"attention.output.LayerNorm.{part}", np.float32) for part in ("weight", "bias")]
        self.norm2 = [upload(f"output.LayerNorm.{part}", np.float32) for part in ("weight", "bias")]


class Encoder:
    """Encodes token ids as unit vectors."""

    def __init__(self, ctx, model, dtype=np.float32):
        self.ctx, self.dtype = ctx, np.dtype(dtype)
        config = model.config
        self.size, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.words = ctx.array(model["embeddings.word_embeddings.weight"], dtype)
        # All tokens have the first type, so its vector is added to the position vectors in advance.
        types = ctx.array(model["embeddings.token_type_embeddings.weight"])
        self.positions = (ctx.array(model["embeddings.position_embeddings.weight"]) + types[0]).astype(dtype)
        self.norm = [ctx.array(model[f"embeddings.LayerNorm.{part}"]) for part in ("weight", "bias")]
        self.layers = [_Layer(ctx, model, i, dtype) for i in range(config["num_hidden_layers"])]
        # x / |x| is x / sqrt(mean(x^2)) / sqrt(size).
        self.unit = ctx.full(self.size, 1 / math.sqrt(self.size))

    def batch(self, texts):
        """Encodes lists of token ids. Returns vectors (texts, size) on the device."""
        return self.encode(*self.inputs(texts))

    def inputs(self, texts):
        """Returns what encode takes: ids (texts, seq), lengths (texts), and rows that average tokens (texts, 1, seq)."""
        ctx, count, seq = self.ctx, len(texts), -(-max(map(len, texts)) // STEP) * STEP
        seq = min(seq, len(self.positions))
        lengths = np.array([len(text) for text in texts], np.int32)
        ids = np.zeros((count, seq), np.int32)
        for row, text in zip(ids, texts):
            row[: len(text)] = text
        # The mean over the actual tokens: rows of 1 / length and zeros, multiplied by the token vectors.
        mean = (np.arange(seq) < lengths[:, None]) / lengths[:, None]
        return ctx.array(ids, np.int32), ctx.array(lengths, np.int32), ctx.array(mean[:, None], self.dtype)

    def encode(self, ids, lengths, mean):
        """The network alone: everything that runs on the device."""
        count, seq = ids.shape
        rows, head = count * seq, (count, seq, self.heads, self.size // self.heads)

        x = tuff.embedding(self.words, ids) + self.positions[:seq]
        x = x.layer_norm(*self.norm, epsilon=self.epsilon).reshape(rows, self.size)
        for layer in self.layers:
            q, k, v = tuff.matmul(x, layer.qkv.mT, bias=layer.qkv_bias)
            seen = tuff.attention(q.reshape(head), k.reshape(head), v.reshape(head), layout="bshd", kv_lengths=lengths)
            y = tuff.matmul(seen.reshape(rows, self.size), layer.joined.T, bias=layer.joined_bias)
            x = tuff.layer_norm(y, *layer.norm1, epsilon=self.epsilon, residual=x)
            y = tuff.matmul(x, layer.wide.T, bias=layer.wide_bias, activation="gelu")
            y = tuff.matmul(y, layer.narrow.T, bias=layer.narrow_bias)
            x = tuff.layer_norm(y, *layer.norm2, epsilon=self.epsilon, residual=x)

        pooled = mean @ x.reshape(count, seq, self.size)
        return pooled.reshape(count, self.size).rms_norm(self.unit, epsilon=0)

    def __call__(self, texts, batch=32, progress=None):
        """Returns vectors (texts, size) as a NumPy array. Texts of similar length are encoded together."""
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        result, pending = np.empty((len(texts), self.size), np.float32), []
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            pending.append((chosen, self.batch([texts[index] for index in chosen])))
            if len(pending) > 1:  # the device works on one batch while the previous one is fetched
                self._fetch(pending.pop(0), result)
            if progress:
                progress(start + len(chosen))
        while pending:
            self._fetch(pending.pop(0), result)
        return result

    @staticmethod
    def _fetch(batch, result):
        chosen, vectors = batch
        result[chosen] = vectors.numpy()
