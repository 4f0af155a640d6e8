#!/usr/bin/env python3
"""Multiplies PyTorch tensors with Tuff in shared memory, without copies. The result is a PyTorch tensor.

    python3 examples/cuda_interop/interop.py [--size 1024] [--device nvidia] [--without-torch]

Tuff allocates exportable memory, CUDA imports its file descriptor, and the tensors use it. The work of CUDA and Tuff is
ordered only by waiting: call torch.cuda.synchronize() before Tuff reads, and Context.synchronize() before PyTorch does.
--without-torch uses CUDA's own copies and NumPy instead. Status 77 means that a requirement is missing; the message
says which.
"""

import argparse
import sys

import numpy as np

import tuff
from cuda_memory import Cuda, CudaArray, CudaError, SharedMemory


def missing(what: str) -> "SystemExit":
    print(f"not run: {what}")
    return SystemExit(77)


def gemm(ctx, a, b, c, m, n, k):
    """c = a @ b on Tuff buffers of float32."""
    no = tuff.raw.NO_TRANS
    tuff.check(
        tuff.raw.tuff_gemm(
            ctx.handle, tuff.raw.F32, no, no, m, n, k, 1.0, a.handle, k, b.handle, n, 0.0, c.handle, n
        )
    )


def with_torch(ctx, cuda, shared, m, n, k):
    try:
        import torch
    except ImportError as error:
        raise missing(f"{error}; --without-torch needs only NumPy and the CUDA driver") from error
    if not torch.cuda.is_available():
        raise missing("this PyTorch has no CUDA device")
    place = torch.device("cuda", cuda.index)
    shapes = ((m, k), (k, n), (m, n))
    a, b, c = (torch.as_tensor(CudaArray(memory, shape), device=place) for memory, shape in zip(shared, shapes))
    for tensor, memory in zip((a, b, c), shared):
        if tensor.data_ptr() != memory.pointer:
            raise SystemExit("FAILED: PyTorch has copied the memory")
    torch.manual_seed(0)
    a.copy_(torch.randn(m, k, device=place))  # written where Tuff reads
    b.copy_(torch.randn(k, n, device=place))
    torch.cuda.synchronize(place)
    gemm(ctx, *(memory.buffer for memory in shared), m, n, k)
    ctx.synchronize()
    result = (c * 2).cpu().numpy() / 2  # a PyTorch operation on Tuff's result
    return a.cpu().numpy(), b.cpu().numpy(), result


def without_torch(ctx, cuda, shared, m, n, k):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    cuda.upload(shared[0].pointer, a.tobytes())
    cuda.upload(shared[1].pointer, b.tobytes())
    cuda.synchronize()
    gemm(ctx, *(memory.buffer for memory in shared), m, n, k)
    ctx.synchronize()
    c = np.frombuffer(cuda.download(shared[2].pointer, 4 * m * n), np.float32).reshape(m, n)
    return a, b, c


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--device", help="index or part of a name of Tuff's device")
    parser.add_argument("--without-torch", action="store_true")
    arguments = parser.parse_args()
    m, n, k = arguments.size, arguments.size // 2 or 1, arguments.size
    if tuff.device_count() == 0:
        raise missing("there is no Vulkan device")
    with tuff.Context(device=arguments.device) as ctx:
        if not ctx.supports("memory_fd"):
            raise missing(f"{ctx.device.name} does not export memory (VK_KHR_external_memory_fd)")
        try:
            cuda = Cuda(bytes(ctx.device.properties.uuid))
        except CudaError as error:
            raise missing(f"{error} (Tuff's device is {ctx.device.name})") from error
        shared = []
        try:
            for elements in (m * k, k * n, m * n):
                shared.append(SharedMemory(cuda, ctx.alloc(4 * elements, exportable=True)))
            compute = without_torch if arguments.without_torch else with_torch
            a, b, c = compute(ctx, cuda, shared, m, n, k)
        finally:
            cuda.synchronize()
            for memory in shared:
                memory.close()
        # Error bound of each element: (k + 3) * u * (sum of absolute products).
        error = np.abs(c - a.astype(np.float64) @ b.astype(np.float64))
        bound = (k + 3) * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
        worst = float((error / bound).max())
        print(f"{ctx.device.name}: {m} x {n} x {k} in shared memory, error {worst:.3f} of its bound")
        if not worst <= 1:
            print("FAILED: the product is wrong")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
