// Descriptors or device addresses: which is faster is a property of the driver and of the kernel.
//
// GPUs: addresses. On an H200 kernels take as long either way, but a descriptor costs the host and the device a quarter
// of a microsecond for each operation (a small one that waits for the one before, replayed: 2.05 and 1.8 us). To
// measure that is no help: what a wait for a GPU takes varies by more, and sometimes chose descriptors.
//
// Processors: measured, once for each driver build, and kept on disk. Kernels that stream memory: on Mesa 22.3
// descriptors win (relu 13.3 against 10 GB/s), as on 25.0 (24.9 against 11.2) with 64-bit loads, while with 32-bit
// loads 25.0 had it the other way round. And with it whether 16 bytes are two numbers of 64 bits or four of 32: for
// each lane that is stored, LLVM puts the vector on the stack and takes the lane from there, which an Intel Xeon does
// slowly for 64 bytes at once (Mesa 22.3: relu 7.1 GB/s by numbers of 64 bits, 10.6 by those of 32; a Zen 4 and
// Mesa 25.0 have it the other way round). Kernels that work on tiles, and gather their elements: the drivers disagree
// again. On 22.3 descriptors are twice as fast (gemm 64: 11.1 against 4.5 GFLOP/s of a core; attention over 256
// keys: 7.3 against 14.4 ms), on 25.0 addresses (9.5 to 16.1; 4.1 to 3.3 ms). So this is measured too, by a small
// product. Kernels that read what was packed for them, at addresses that are uniform: addresses wherever the device has
// them (gemm 512: 52 against 40 and 73 against 64 GFLOP/s on Mesa 22.3 and 25.0).
#pragma once

#include <memory>

#include "runtime/vulkan/kernel_cache.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// Decides and tells the recorder. TUFF_BINDING=descriptors|addresses decides for all kernels, where the device
// can do both.
void choose_binding(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Device& device,
                    KernelCache& kernels);

}  // namespace tuff
