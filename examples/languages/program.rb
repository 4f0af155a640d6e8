# relu(A @ B) on the best device, with Ruby's Fiddle. TUFF_LIBRARY=../../build/release/libtuff.so ruby program.rb
require "fiddle/import"

module Tuff
  extend Fiddle::Importer
  dlload ENV["TUFF_LIBRARY"] || "libtuff.so.1"
  typealias "handle", "unsigned long long"
  typealias "size", "unsigned long long"
  extern "int tuff_last_error(char*, size, void*)"
  extern "int tuff_context_create(void*, void*)"
  extern "int tuff_context_destroy(handle)"
  extern "int tuff_alloc(handle, size, void*)"
  extern "int tuff_copy_htod(handle, handle, size, void*, size)"
  extern "int tuff_copy_dtoh(handle, void*, handle, size, size)"
  extern "int tuff_gemm(handle, int, int, int, size, size, size, double, handle, size, handle, size, double, handle, size)"
  extern "int tuff_unary(handle, int, int, handle, handle, size)"
  F32, NO_TRANS, RELU = 1, 0, 1

  def self.check(status)
    return if status.zero?
    message = "\0" * 512
    tuff_last_error(message, message.bytesize, nil)
    raise message.unpack1("Z*")
  end

  # Calls a function whose last argument receives a handle.
  def self.make(function, *arguments)
    handle = "\0" * 8
    check(send(function, *arguments, handle))
    handle.unpack1("Q")
  end

  def self.upload(context, values)
    data = values.pack("f*")
    buffer = make(:tuff_alloc, context, data.bytesize)
    check(tuff_copy_htod(context, buffer, 0, data, data.bytesize))
    buffer
  end
end

m, n, k = 2, 2, 3
context = Tuff.make(:tuff_context_create, nil)
a = Tuff.upload(context, [1, 2, 3, 4, 5, 6])
b = Tuff.upload(context, [-2, 1, -1, -1, 1.5, 1])
c = Tuff.make(:tuff_alloc, context, 4 * m * n)
Tuff.check(Tuff.tuff_gemm(context, Tuff::F32, Tuff::NO_TRANS, Tuff::NO_TRANS, m, n, k, 1.0, a, k, b, n, 0.0, c, n))
Tuff.check(Tuff.tuff_unary(context, Tuff::F32, Tuff::RELU, c, c, m * n))
result = "\0" * (4 * m * n)
Tuff.check(Tuff.tuff_copy_dtoh(context, result, c, 0, result.bytesize))

puts "relu(A @ B), A 2x3, B 3x2:"
result.unpack("f*").each_slice(n) { |row| puts row.map { |value| format("  %.1f", value) }.join }
Tuff.check(Tuff.tuff_context_destroy(context)) # frees the buffers too
