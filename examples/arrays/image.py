"""A photograph, developed: linear light, exposure and white balance, local contrast, sharpening, a vignette, and back to
the screen's curve. Elements are computed by formulas, neighbourhoods by convolutions of one axis after the other.
"""

import time

import numpy as np
import tuff

from photograph import photograph

WIDE, NARROW = 12.0, 1.2  # the widths of the two blurs, in pixels

TO_LINEAR = "s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4"
FROM_LINEAR = "v = clamp(l, 0, 1); 255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055) + 0.5"


def gaussian(sigma):
    reach = int(3 * sigma + 0.5)
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return (taps / taps.sum()).astype(np.float32)


def radius(height, width):
    """The squared distance from the middle, 1 at the corners, as a row and a column."""
    column = np.linspace(-1, 1, height, dtype=np.float32)[:, None] ** 2 / 2
    return column, np.linspace(-1, 1, width, dtype=np.float32) ** 2 / 2


def with_tuff(ctx, image):
    """image: (3, height, width), uint8."""
    kernels = {sigma: ctx.array(gaussian(sigma)) for sigma in (WIDE, NARROW)}

    def blurred(planes, sigma):
        """Each plane with zeros outside, divided by the share of the weights that was inside."""
        taps = kernels[sigma]
        n = taps.size

        def both_axes(x):
            x = tuff.conv2d(x, taps.reshape(1, 1, n, 1), padding=(n // 2, 0))
            return tuff.conv2d(x, taps.reshape(1, 1, 1, n), padding=(0, n // 2))

        inside = both_axes(ctx.ones((1, 1, *planes.shape[1:])))
        return (both_axes(planes.reshape(planes.shape[0], 1, *planes.shape[1:])) / inside).reshape(planes.shape)

    source = ctx.array(image)
    light = tuff.expr(TO_LINEAR, dtype=np.float32, s=source.astype(np.float32) * (1 / 255))
    means = light.mean(axis=(1, 2), keepdims=True)  # the average of a scene is taken to be grey
    light = tuff.expr("l * (0.2 / m)", l=light, m=means)
    grey = tuff.expr("0.2126 * r + 0.7152 * g + 0.0722 * b", r=light[0], g=light[1], b=light[2])
    around = blurred(grey.reshape(1, *grey.shape), WIDE)
    light = tuff.expr("l * (0.25 / (a + 0.05)) ** 0.5", l=light, a=around)
    light = tuff.expr("l + 1.2 * (l - b)", l=light, b=blurred(light, NARROW))
    column, row = (ctx.array(part) for part in radius(*grey.shape))
    light = tuff.expr("l * (1 - 0.55 * (r + c) ** 2)", l=light, r=row, c=column)
    return tuff.expr(FROM_LINEAR, dtype=np.uint8, l=light).numpy()


def with_numpy(image):
    def blurred(planes, sigma):
        taps = gaussian(sigma)

        def both_axes(x):
            for axis in (1, 2):
                wide = np.pad(x, [(len(taps) // 2,) * 2 if one == axis else (0, 0) for one in range(3)])
                count = x.shape[axis]
                x = sum(tap * wide.take(range(i, i + count), axis) for i, tap in enumerate(taps))
            return x

        return both_axes(planes) / both_axes(np.ones((1, *planes.shape[1:]), np.float32))

    s = image.astype(np.float32) * np.float32(1 / 255)
    light = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4).astype(np.float32)
    light = light * (np.float32(0.2) / light.mean(axis=(1, 2), keepdims=True))
    grey = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
    light = light * (0.25 / (blurred(grey[None], WIDE) + 0.05)) ** 0.5
    light = light + 1.2 * (light - blurred(light, NARROW))
    column, row = radius(*grey.shape)
    v = np.clip(light * (1 - 0.55 * (row + column) ** 2), 0, 1)
    return (255 * np.where(v <= 0.0031308, 12.92 * v, 1.055 * v ** (1 / 2.4) - 0.055) + 0.5).astype(np.uint8)


def run(ctx, path, quick):
    from style import plt

    name, pixels = photograph()
    image = np.ascontiguousarray((pixels * 255).astype(np.uint8).transpose(2, 0, 1))
    image = image[:, ::4, ::4].copy() if quick else image.repeat(2, axis=1).repeat(2, axis=2)
    with_tuff(ctx, image)  # compiles
    begin = time.monotonic()
    ours_image = with_tuff(ctx, image)
    ours = time.monotonic() - begin
    begin = time.monotonic()
    expected = with_numpy(image)
    theirs = time.monotonic() - begin
    off = np.abs(ours_image.astype(int) - expected).max()
    if off > 1:
        raise SystemExit(f"error: a pixel differs from NumPy's by {off}")
    figure, axes = plt.subplots(1, 2, figsize=(10, 10 * image.shape[1] / image.shape[2] / 2 + 0.4))
    for axis, title, shown in zip(axes, (name, "developed"), (image, ours_image)):
        axis.imshow(shown.transpose(1, 2, 0))
        axis.set_title(title)
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return ours, theirs
