"""The magnitudes in Winograd's minimal filtering, for its error bound (Lavin and Gray, 2015)."""

from __future__ import annotations

import numpy as np

# F(2, 3) and F(4, 3): the magnitudes of the input (B), filter (G) and output (A) transforms.
_TRANSFORMS = {
    2: (
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]],
    ),
    4: (
        [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
         [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]],
        [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
         [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    ),
}  # fmt: skip


def winograd_size(x: np.ndarray, w: np.ndarray, pads, out) -> np.ndarray:
    """|A|^T ((|G| |g| |G|^T) * (|B|^T |d| |B|)) |A| for each output, the larger one of the two tile sizes."""
    result = np.zeros((x.shape[0], w.shape[0], *out))
    for m, transforms in _TRANSFORMS.items():
        b, g, a = (np.abs(np.array(t)) for t in transforms)
        tiles = [-(-p // m) for p in out]
        padded = np.pad(x, [(0, 0), (0, 0), *((low, high + m + 2) for low, high in pads)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (m + 2, m + 2), (2, 3))
        windows = windows[:, :, : tiles[0] * m : m, : tiles[1] * m : m]
        d = np.einsum("ip,ncyxpq,jq->ncyxij", b, windows, b, optimize=True)
        u = np.einsum("ir,kcrs,js->kcij", g, w, g, optimize=True)
        sums = np.einsum("ncyxij,kcij->nkyxij", d, u, optimize=True)
        back = np.einsum("ei,nkyxij,fj->nkyexf", a, sums, a, optimize=True)
        back = back.reshape(x.shape[0], w.shape[0], tiles[0] * m, tiles[1] * m)[:, :, : out[0], : out[1]]
        result = np.maximum(result, back)
    return result
