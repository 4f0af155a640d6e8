-- relu(A @ B) with the binding that lua.py generates.
local ffi = require("ffi")
local tuff = require("tuff")

local function check(status)
  if status ~= tuff.OK then
    local message = ffi.new("char[512]")
    tuff.lib.tuff_last_error(message, 512, nil)
    error(ffi.string(message))
  end
end

local handle = ffi.new("uint64_t[1]")
check(tuff.lib.tuff_context_create(nil, handle))
local ctx = handle[0]

local function upload(values)
  check(tuff.lib.tuff_alloc(ctx, 4 * #values, handle))
  check(tuff.lib.tuff_copy_htod(ctx, handle[0], 0, ffi.new("float[?]", #values, values), 4 * #values))
  return handle[0]
end

local desc = ffi.new("tuff_gemm_desc", { struct_size = ffi.sizeof("tuff_gemm_desc"), dtype = tuff.F32, alpha = 1 })
desc.m, desc.n, desc.k = 2, 2, 3
desc.a, desc.b = upload({ 1, 2, 3, 4, 5, 6 }), upload({ -2, 1, -1, -1, 1.5, 1 })
desc.c, desc.activation = upload({ 0, 0, 0, 0 }), tuff.ACTIVATION_RELU
check(tuff.lib.tuff_gemm_ex(ctx, desc))
local result = ffi.new("float[4]")
check(tuff.lib.tuff_copy_dtoh(ctx, result, desc.c, 0, 16))
print("relu(A @ B), A 2x3, B 3x2:")
for row = 0, 1 do
  print(string.format("  %.1f  %.1f", result[row * 2], result[row * 2 + 1]))
end
check(tuff.lib.tuff_context_destroy(ctx))
