// Kernels in PTX for tests, as compilers write them.
#pragma once

#include "support/kernel.hpp"

namespace tuff_test {

inline tuff_kernel_desc ptx(const char* source, uint32_t threads = 0, uint32_t shared_bytes = 0) {
  tuff_kernel_desc desc{};
  desc.struct_size = sizeof desc;
  desc.language = TUFF_KERNEL_PTX;
  desc.source = source;
  desc.name = "test.ptx";
  if (threads != 0) desc.workgroup_size[0] = threads, desc.workgroup_size[1] = desc.workgroup_size[2] = 1;
  desc.shared_bytes = shared_bytes;
  return desc;
}

// y = a * x + y for n elements. Pointers are marked, and numbers stand between them.
inline constexpr const char* kSaxpyPtx = R"(//
// y = a * x + y
//
.version 7.8
.target sm_80
.address_size 64

	// .globl	saxpy
.visible .entry saxpy(
	.param .u64 .ptr .global .align 4 saxpy_param_0, /* x */
	.param .f32 saxpy_param_1,
	.param .u64 .ptr .global .align 4 saxpy_param_2,
	.param .u32 saxpy_param_3
)
{
	.reg .pred 	%p<2>;
	.reg .f32 	%f<5>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<6>;
	ld.param.u64 	%rd1, [saxpy_param_0];
	ld.param.f32 	%f1, [saxpy_param_1];
	ld.param.u64 	%rd2, [saxpy_param_2];
	ld.param.u32 	%r1, [saxpy_param_3];
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mov.u32 	%r4, %tid.x;
	mad.lo.s32 	%r5, %r2, %r3, %r4;
	setp.ge.u32 	%p1, %r5, %r1;
	@%p1 bra 	$L__done;
	mul.wide.u32 	%rd3, %r5, 4;
	add.s64 	%rd4, %rd1, %rd3;
	add.s64 	%rd5, %rd2, %rd3;
	ld.global.f32 	%f2, [%rd4];
	ld.global.f32 	%f3, [%rd5];
	fma.rn.f32 	%f4, %f1, %f2, %f3;
	st.global.f32 	[%rd5], %f4;
$L__done:
	ret;
}
)";

// Transposes tiles of 16 x 16 by shared memory of which the module says nothing; the last 1,024 bytes of it are used.
// Pointers are not marked, and the numbers are a structure {u32 bytes of shared memory; u32 columns; u32 rows}.
inline constexpr const char* kTransposePtx = R"(.version 7.8
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 tile[];
.visible .entry other() { ret; }
.visible .entry transpose(
	.param .align 4 .b8 sizes[12],
	.param .u64 from,
	.param .u64 unused,
	.param .u64 to
)
.maxntid 16, 16, 1
.minnctapersm 1
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<40>;
	.reg .b64 	%rd<12>;
	ld.param.u32 	%r1, [sizes];
	ld.param.u32 	%r2, [sizes+4];
	ld.param.u32 	%r3, [sizes+8];
	ld.param.u64 	%rd1, [from];
	ld.param.u64 	%rd2, [to];
	cvta.to.global.u64 	%rd1, %rd1;
	mov.u32 	%r4, %tid.x;
	mov.u32 	%r5, %tid.y;
	mov.u32 	%r6, %ctaid.x;
	mov.u32 	%r7, %ctaid.y;
	shl.b32 	%r8, %r6, 4;
	shl.b32 	%r9, %r7, 4;
	add.s32 	%r10, %r8, %r4;
	add.s32 	%r11, %r9, %r5;
	mov.u32 	%r12, tile;
	add.s32 	%r12, %r12, %r1;
	sub.s32 	%r12, %r12, 1024;
	setp.ge.u32 	%p1, %r10, %r2;
	setp.ge.u32 	%p2, %r11, %r3;
	or.pred 	%p3, %p1, %p2;
	@%p3 bra 	write;
	mad.lo.u32 	%r13, %r11, %r2, %r10;
	mul.wide.u32 	%rd3, %r13, 4;
	add.s64 	%rd4, %rd1, %rd3;
	ld.global.u32 	%r14, [%rd4];
	shl.b32 	%r15, %r5, 6;
	shl.b32 	%r16, %r4, 2;
	add.s32 	%r17, %r12, %r15;
	add.s32 	%r17, %r17, %r16;
	st.shared.u32 	[%r17], %r14;
write:
	bar.sync 	0;
	add.s32 	%r20, %r9, %r4;
	add.s32 	%r21, %r8, %r5;
	setp.ge.u32 	%p1, %r20, %r3;
	setp.ge.u32 	%p2, %r21, %r2;
	or.pred 	%p3, %p1, %p2;
	@%p3 bra 	done;
	shl.b32 	%r22, %r4, 6;
	shl.b32 	%r23, %r5, 2;
	add.s32 	%r24, %r12, %r22;
	add.s32 	%r24, %r24, %r23;
	ld.shared.u32 	%r25, [%r24];
	mad.lo.u32 	%r26, %r21, %r3, %r20;
	mul.wide.u32 	%rd5, %r26, 4;
	add.s64 	%rd6, %rd2, %rd5;
	st.global.u32 	[%rd6], %r25;
done:
	ret;
}
)";

}  // namespace tuff_test
