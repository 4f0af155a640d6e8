// Descriptors or device addresses: which is faster depends on the driver and on the kernel.
//
// GPUs use addresses. Kernels take equally long either way on an H200, but a descriptor costs the host and the device a
// quarter of a microsecond per operation (a small dependent operation, replayed: 2.05 and 1.8 us). Measuring does not
// help: the time of a wait for a GPU varies by more than that, and sometimes descriptors were chosen.
//
// CPU devices are measured, once for each driver build, and the result is kept on disk. Measurements so far:
//
// - Streaming kernels: descriptors win on Mesa 22.3 (relu 13.3 against 10 GB/s), and on 25.0 with 64-bit loads (24.9
//   against 11.2); with 32-bit loads 25.0 has it the other way round.
// - Whether to load 16 bytes as two 64-bit or four 32-bit numbers is measured together with the binding method. For
//   each lane that is stored, LLVM puts the vector on the stack and loads the lane from there, which an Intel Xeon does
//   slowly for 64 bytes at once (Mesa 22.3: relu 7.1 GB/s with 64-bit numbers, 10.6 with 32-bit ones; a Zen 4 and Mesa
//   25.0 have it the other way round).
// - Kernels that work on tiles and gather their elements: a small GEMM is measured, because the drivers disagree again.
//   On 22.3 descriptors are twice as fast (gemm 64: 11.1 against 4.5 GFLOP/s of a core; attention over 256 keys: 7.3
//   against 14.4 ms), on 25.0 addresses (9.5 to 16.1; 4.1 to 3.3 ms).
// - Kernels that read packed operands, at uniform addresses, use device addresses wherever they are supported, without
//   a measurement (gemm 512: 52 against 40 and 73 against 64 GFLOP/s on Mesa 22.3 and 25.0).
// - Kernels that gather single elements have them bound as texel buffers on every CPU device (KernelRequest::texels),
//   without a measurement: products of sparse matrices take 1.9 to 7.6 ns of a core for each entry with Mesa 22.3 by
//   texel buffers, and 4.4 to 15 by storage buffers.
#pragma once

#include <memory>

#include "runtime/vulkan/kernel_cache.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// Chooses the binding methods and sets them in the recorder. TUFF_BINDING=descriptors|addresses overrides the choice
// for all kernels, if the device supports both, and leaves texel buffers out.
void choose_binding(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Device& device,
                    KernelCache& kernels);

}  // namespace tuff
