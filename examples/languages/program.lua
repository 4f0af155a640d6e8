-- relu(A @ B) on the best device, by LuaJIT's FFI. TUFF_LIBRARY=../../build/release/libtuff.so luajit program.lua
local ffi = require("ffi")

ffi.cdef [[
int32_t tuff_last_error(char* buffer, uint64_t capacity, uint64_t* length);
int32_t tuff_context_create(const void* desc, uint64_t* context);
int32_t tuff_context_destroy(uint64_t context);
int32_t tuff_alloc(uint64_t context, uint64_t bytes, uint64_t* buffer);
int32_t tuff_copy_htod(uint64_t stream, uint64_t dst, uint64_t dst_offset, const void* src, uint64_t bytes);
int32_t tuff_copy_dtoh(uint64_t stream, void* dst, uint64_t src, uint64_t src_offset, uint64_t bytes);
int32_t tuff_gemm(uint64_t stream, int32_t dtype, int32_t ta, int32_t tb, uint64_t m, uint64_t n, uint64_t k,
                  double alpha, uint64_t a, uint64_t lda, uint64_t b, uint64_t ldb, double beta, uint64_t c,
                  uint64_t ldc);
int32_t tuff_unary(uint64_t stream, int32_t dtype, int32_t op, uint64_t input, uint64_t output, uint64_t n);
]]
local F32, NO_TRANS, RELU = 1, 0, 1
local tuff = ffi.load(os.getenv("TUFF_LIBRARY") or "libtuff.so.1")

local function check(status)
  if status ~= 0 then
    local message = ffi.new("char[512]")
    tuff.tuff_last_error(message, 512, nil)
    error(ffi.string(message))
  end
end

local handle = ffi.new("uint64_t[1]")
check(tuff.tuff_context_create(nil, handle))
local ctx = handle[0]

local function upload(values)
  local data = ffi.new("float[?]", #values, values)
  check(tuff.tuff_alloc(ctx, 4 * #values, handle))
  check(tuff.tuff_copy_htod(ctx, handle[0], 0, data, 4 * #values))
  return handle[0]
end

local m, n, k = 2, 2, 3
local a = upload({ 1, 2, 3, 4, 5, 6 })
local b = upload({ -2, 1, -1, -1, 1.5, 1 })
local c = upload({ 0, 0, 0, 0 })
check(tuff.tuff_gemm(ctx, F32, NO_TRANS, NO_TRANS, m, n, k, 1, a, k, b, n, 0, c, n))
check(tuff.tuff_unary(ctx, F32, RELU, c, c, m * n))
local result = ffi.new("float[?]", m * n)
check(tuff.tuff_copy_dtoh(ctx, result, c, 0, 4 * m * n))

print("relu(A @ B), A 2x3, B 3x2:")
for row = 0, m - 1 do
  print(string.format("  %.1f  %.1f", result[row * n], result[row * n + 1]))
end
check(tuff.tuff_context_destroy(ctx)) -- frees the buffers too
