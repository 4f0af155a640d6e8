// A module for tests, assembled by spirv-as, with 64-bit indices into an array in shared memory of 100, 101, 102, 103:
// out[0] = s[at], out[1] = s[at + 2^32 + 5], s[at] = 7, out[2] = s[3].
//
//   OpCapability Shader
//   OpCapability Int64
//   OpMemoryModel Logical GLSL450
//   OpEntryPoint GLCompute %main "main"
//   OpExecutionMode %main LocalSize 1 1 1
//   OpDecorate %AtBlock BufferBlock
//   OpMemberDecorate %AtBlock 0 Offset 0
//   OpDecorate %at DescriptorSet 0
//   OpDecorate %at Binding 0
//   OpDecorate %OutArray ArrayStride 4
//   OpDecorate %OutBlock BufferBlock
//   OpMemberDecorate %OutBlock 0 Offset 0
//   OpDecorate %out DescriptorSet 0
//   OpDecorate %out Binding 1
//   %void = OpTypeVoid
//   %fn = OpTypeFunction %void
//   %int = OpTypeInt 32 1
//   %uint = OpTypeInt 32 0
//   %long = OpTypeInt 64 1
//   %ulong = OpTypeInt 64 0
//   %c0 = OpConstant %int 0
//   %c1 = OpConstant %int 1
//   %c2 = OpConstant %int 2
//   %u7 = OpConstant %uint 7
//   %u4 = OpConstant %uint 4
//   %i0 = OpConstant %int 0
//   %v0 = OpConstant %uint 100
//   %i1 = OpConstant %int 1
//   %v1 = OpConstant %uint 101
//   %i2 = OpConstant %int 2
//   %v2 = OpConstant %uint 102
//   %i3 = OpConstant %int 3
//   %v3 = OpConstant %uint 103
//   %far = OpConstant %ulong 4294967301
//   %AtBlock = OpTypeStruct %int
//   %pAt = OpTypePointer Uniform %AtBlock
//   %at = OpVariable %pAt Uniform
//   %OutArray = OpTypeRuntimeArray %uint
//   %OutBlock = OpTypeStruct %OutArray
//   %pOut = OpTypePointer Uniform %OutBlock
//   %out = OpVariable %pOut Uniform
//   %arr = OpTypeArray %uint %u4
//   %pArr = OpTypePointer Workgroup %arr
//   %s = OpVariable %pArr Workgroup
//   %pS = OpTypePointer Workgroup %uint
//   %pInt = OpTypePointer Uniform %int
//   %pUint = OpTypePointer Uniform %uint
//   %main = OpFunction %void None %fn
//   %l = OpLabel
//   %q0 = OpAccessChain %pS %s %i0
//   OpStore %q0 %v0
//   %q1 = OpAccessChain %pS %s %i1
//   OpStore %q1 %v1
//   %q2 = OpAccessChain %pS %s %i2
//   OpStore %q2 %v2
//   %q3 = OpAccessChain %pS %s %i3
//   OpStore %q3 %v3
//   %pa = OpAccessChain %pInt %at %c0
//   %a = OpLoad %int %pa
//   %al = OpSConvert %long %a
//   %x0 = OpAccessChain %pS %s %al
//   %y0 = OpLoad %uint %x0
//   %o0 = OpAccessChain %pUint %out %c0 %c0
//   OpStore %o0 %y0
//   %au = OpBitcast %ulong %al
//   %af = OpIAdd %ulong %au %far
//   %x1 = OpAccessChain %pS %s %af
//   %y1 = OpLoad %uint %x1
//   %o1 = OpAccessChain %pUint %out %c0 %c1
//   OpStore %o1 %y1
//   OpStore %x0 %u7
//   %y2p = OpAccessChain %pS %s %i3
//   %y2 = OpLoad %uint %y2p
//   %o2 = OpAccessChain %pUint %out %c0 %c2
//   OpStore %o2 %y2
//   OpReturn
//   OpFunctionEnd
#pragma once

#include <cstdint>

namespace tuff_test {

// clang-format off
inline constexpr uint32_t kLongIndexWords[] = {
    0x07230203, 0x00010300, 0x00070000, 0x00000036, 0x00000000, 0x00020011, 0x00000001, 0x00020011,
    0x0000000b, 0x0003000e, 0x00000000, 0x00000001, 0x0005000f, 0x00000005, 0x00000001, 0x6e69616d,
    0x00000000, 0x00060010, 0x00000001, 0x00000011, 0x00000001, 0x00000001, 0x00000001, 0x00030047,
    0x00000002, 0x00000003, 0x00050048, 0x00000002, 0x00000000, 0x00000023, 0x00000000, 0x00040047,
    0x00000003, 0x00000022, 0x00000000, 0x00040047, 0x00000003, 0x00000021, 0x00000000, 0x00040047,
    0x00000004, 0x00000006, 0x00000004, 0x00030047, 0x00000005, 0x00000003, 0x00050048, 0x00000005,
    0x00000000, 0x00000023, 0x00000000, 0x00040047, 0x00000006, 0x00000022, 0x00000000, 0x00040047,
    0x00000006, 0x00000021, 0x00000001, 0x00020013, 0x00000007, 0x00030021, 0x00000008, 0x00000007,
    0x00040015, 0x00000009, 0x00000020, 0x00000001, 0x00040015, 0x0000000a, 0x00000020, 0x00000000,
    0x00040015, 0x0000000b, 0x00000040, 0x00000001, 0x00040015, 0x0000000c, 0x00000040, 0x00000000,
    0x0004002b, 0x00000009, 0x0000000d, 0x00000000, 0x0004002b, 0x00000009, 0x0000000e, 0x00000001,
    0x0004002b, 0x00000009, 0x0000000f, 0x00000002, 0x0004002b, 0x0000000a, 0x00000010, 0x00000007,
    0x0004002b, 0x0000000a, 0x00000011, 0x00000004, 0x0004002b, 0x00000009, 0x00000012, 0x00000000,
    0x0004002b, 0x0000000a, 0x00000013, 0x00000064, 0x0004002b, 0x00000009, 0x00000014, 0x00000001,
    0x0004002b, 0x0000000a, 0x00000015, 0x00000065, 0x0004002b, 0x00000009, 0x00000016, 0x00000002,
    0x0004002b, 0x0000000a, 0x00000017, 0x00000066, 0x0004002b, 0x00000009, 0x00000018, 0x00000003,
    0x0004002b, 0x0000000a, 0x00000019, 0x00000067, 0x0005002b, 0x0000000c, 0x0000001a, 0x00000005,
    0x00000001, 0x0003001e, 0x00000002, 0x00000009, 0x00040020, 0x0000001b, 0x00000002, 0x00000002,
    0x0004003b, 0x0000001b, 0x00000003, 0x00000002, 0x0003001d, 0x00000004, 0x0000000a, 0x0003001e,
    0x00000005, 0x00000004, 0x00040020, 0x0000001c, 0x00000002, 0x00000005, 0x0004003b, 0x0000001c,
    0x00000006, 0x00000002, 0x0004001c, 0x0000001d, 0x0000000a, 0x00000011, 0x00040020, 0x0000001e,
    0x00000004, 0x0000001d, 0x0004003b, 0x0000001e, 0x0000001f, 0x00000004, 0x00040020, 0x00000020,
    0x00000004, 0x0000000a, 0x00040020, 0x00000021, 0x00000002, 0x00000009, 0x00040020, 0x00000022,
    0x00000002, 0x0000000a, 0x00050036, 0x00000007, 0x00000001, 0x00000000, 0x00000008, 0x000200f8,
    0x00000023, 0x00050041, 0x00000020, 0x00000024, 0x0000001f, 0x00000012, 0x0003003e, 0x00000024,
    0x00000013, 0x00050041, 0x00000020, 0x00000025, 0x0000001f, 0x00000014, 0x0003003e, 0x00000025,
    0x00000015, 0x00050041, 0x00000020, 0x00000026, 0x0000001f, 0x00000016, 0x0003003e, 0x00000026,
    0x00000017, 0x00050041, 0x00000020, 0x00000027, 0x0000001f, 0x00000018, 0x0003003e, 0x00000027,
    0x00000019, 0x00050041, 0x00000021, 0x00000028, 0x00000003, 0x0000000d, 0x0004003d, 0x00000009,
    0x00000029, 0x00000028, 0x00040072, 0x0000000b, 0x0000002a, 0x00000029, 0x00050041, 0x00000020,
    0x0000002b, 0x0000001f, 0x0000002a, 0x0004003d, 0x0000000a, 0x0000002c, 0x0000002b, 0x00060041,
    0x00000022, 0x0000002d, 0x00000006, 0x0000000d, 0x0000000d, 0x0003003e, 0x0000002d, 0x0000002c,
    0x0004007c, 0x0000000c, 0x0000002e, 0x0000002a, 0x00050080, 0x0000000c, 0x0000002f, 0x0000002e,
    0x0000001a, 0x00050041, 0x00000020, 0x00000030, 0x0000001f, 0x0000002f, 0x0004003d, 0x0000000a,
    0x00000031, 0x00000030, 0x00060041, 0x00000022, 0x00000032, 0x00000006, 0x0000000d, 0x0000000e,
    0x0003003e, 0x00000032, 0x00000031, 0x0003003e, 0x0000002b, 0x00000010, 0x00050041, 0x00000020,
    0x00000033, 0x0000001f, 0x00000018, 0x0004003d, 0x0000000a, 0x00000034, 0x00000033, 0x00060041,
    0x00000022, 0x00000035, 0x00000006, 0x0000000d, 0x0000000f, 0x0003003e, 0x00000035, 0x00000034,
    0x000100fd, 0x00010038};
// clang-format on

}  // namespace tuff_test
