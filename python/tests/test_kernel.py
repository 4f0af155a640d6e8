"""Custom kernels from Python."""

import struct

import numpy as np
import pytest

import tuff

SAXPY = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const float offset = 0;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Parameters { float a; uint n; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = SCALE * a * x[i] + y[i] + offset;
}
"""


def test_computes(vulkan, rng):
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    kernel = vulkan.kernel(SAXPY, name="saxpy.comp", defines={"SCALE": "2.0"}, constants={0: 0.5})
    assert kernel.bindings == 2 and kernel.push_bytes == 8 and kernel.workgroup_size == (64, 1, 1)
    assert kernel.properties.written == 2 and repr(kernel) == "<tuff.Kernel saxpy.comp of 2 buffers>"
    dx, dy = vulkan.array(x), vulkan.array(y)
    kernel(dx, dy, groups=16, push=struct.pack("fI", 3, 1000))
    np.testing.assert_allclose(dy.numpy(), 6 * x + y + 0.5, rtol=1e-5, atol=1e-5)
    push = np.array((3, 1000), dtype=[("a", "f4"), ("n", "u4")])
    kernel(dx, dy.buffer, groups=(16, 1), push=push)
    np.testing.assert_allclose(dy.numpy(), 12 * x + y + 1, rtol=1e-5, atol=1e-5)


def test_constants_have_their_types(vulkan):
    source = """#version 450
layout(constant_id = 0) const bool b = false;
layout(constant_id = 1) const int i = 0;
layout(constant_id = 2) const uint u = 0;
layout(constant_id = 3) const float f = 0;
layout(constant_id = 4) const double d = 0;
layout(binding = 0) writeonly buffer Out { float y[]; };
layout(binding = 1) readonly buffer Unused { float z[]; };
void main() { y[0] = float(b); y[1] = float(i); y[2] = float(u); y[3] = f; y[4] = float(d); }
"""
    constants = {0: True, 1: -7, 2: 4294967295, 3: 0.25, 4: np.float64(1.5)}
    out = vulkan.zeros(5)
    vulkan.kernel(source, constants=constants)(out, None)
    np.testing.assert_array_equal(out.numpy(), np.float32([1, -7, 4294967295, 0.25, 1.5]))
    with pytest.raises(ValueError):
        vulkan.kernel(source, constants={1: 2**40})
    with pytest.raises(TypeError):
        vulkan.kernel(source, constants={1: "7"})


def test_errors_name_the_line(vulkan):
    with pytest.raises(tuff.TuffError, match=r"mine\.comp:2: error: 'nothing'"):
        vulkan.kernel("#version 450\nvoid main() { nothing = 1; }", name="mine.comp")
    with pytest.raises(tuff.TuffError, match="SPIR-V"):
        vulkan.kernel(b"\0" * 40)
    kernel = vulkan.kernel(SAXPY, defines={"SCALE": 1})
    x = vulkan.zeros(4)
    with pytest.raises(tuff.TuffError, match="count is 1"):
        kernel(x, push=bytes(8))
    with pytest.raises(tuff.TuffError, match="push_bytes is 4"):
        kernel(x, vulkan.zeros(4), push=bytes(4))
    with pytest.raises(tuff.TuffError, match="overlaps"):
        kernel(x, x, push=bytes(8))
    with pytest.raises(TypeError):
        kernel(np.zeros(4), x)
    with pytest.raises(ValueError):
        kernel(x, x, groups=(1, 2, 3, 4))


def test_untrusted_source_is_bounded(vulkan):
    bomb = "".join(f"#define M{i} M{i - 1} M{i - 1}\n" for i in range(1, 50))
    with pytest.raises(tuff.TuffError, match="longer than 1000 ms"):
        vulkan.kernel(f"#version 450\n#define M0\n{bomb}void main() {{ M49 }}", untrusted=True, compile_seconds=1)
    assert vulkan.kernel("#version 450\nvoid main() {}", untrusted=True).bindings == 0


def test_host_has_none():
    with tuff.Context(backend="host") as ctx, pytest.raises(tuff.TuffError, match="host backend"):
        ctx.kernel("#version 450\nvoid main() {}")


def test_free(vulkan):
    kernel = vulkan.kernel("#version 450\nvoid main() {}")
    kernel(groups=(2, 2, 2))
    kernel.free()
    kernel.free()
    with pytest.raises(tuff.TuffError, match="stale"):
        kernel()
    left = vulkan.kernel("#version 450\nvoid main() {}")
    vulkan.close()
    left.free()


PTX = """.version 7.8
.target sm_80
.address_size 64
.entry double(.param .u64 .ptr .global .align 4 x, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1;
  @%p ret;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f, [%rd1];
  add.f32 %f, %f, %f;
  st.global.f32 [%rd1], %f;
  ret;
}
"""


def test_ptx(vulkan):
    with pytest.raises(ValueError, match="language"):
        vulkan.kernel(PTX, language="cuda")
    with pytest.raises(ValueError, match="workgroup_size"):
        vulkan.kernel(PTX, language="ptx", workgroup_size=(1, 2, 3, 4))
    with pytest.raises(tuff.TuffError, match="k.ptx:4: error"):
        vulkan.kernel(PTX.replace(".u32 n)", "n)"), language="ptx", name="k.ptx", workgroup_size=32)
    with pytest.raises(tuff.TuffError, match="workgroup_size"):
        vulkan.kernel(PTX, language="ptx")
    with pytest.raises(tuff.TuffError, match="shared_bytes"):
        vulkan.kernel(SAXPY, defines={"SCALE": "1.0"}, shared_bytes=1)
    if not vulkan.supports("ptx"):
        with pytest.raises(tuff.TuffError, match="PTX") as refused:
            vulkan.kernel(PTX, language="ptx", workgroup_size=64)
        assert refused.value.status == tuff.raw.ERROR_UNSUPPORTED
        return
    kernel = vulkan.kernel(PTX, language="ptx", workgroup_size=64)
    assert kernel.bindings == 1 and kernel.push_bytes == 4 and kernel.workgroup_size == (64, 1, 1)
    x = vulkan.array(np.arange(1000))
    kernel(x, groups=16, push=np.uint32(1000))
    np.testing.assert_array_equal(x.numpy(), 2 * np.arange(1000))
