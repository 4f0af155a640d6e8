"""Maps Tuff's memory into CUDA with the driver's library (libcuda), through ctypes."""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p


class CudaError(RuntimeError):
    pass


class _Handle(ctypes.Union):
    # Its largest member is a pair of pointers.
    _fields_ = [("fd", c_int), ("pair", c_void_p * 2)]


class _ExternalMemoryDesc(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_HANDLE_DESC"""

    _fields_ = [
        ("type", c_int),
        ("handle", _Handle),
        ("size", c_ulonglong),
        ("flags", c_uint),
        ("reserved", c_uint * 16),
    ]


class _ExternalBufferDesc(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_BUFFER_DESC"""

    _fields_ = [("offset", c_ulonglong), ("size", c_ulonglong), ("flags", c_uint), ("reserved", c_uint * 16)]


_OPAQUE_FD = 1  # CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
_DEDICATED = 1  # CUDA_EXTERNAL_MEMORY_DEDICATED

_FUNCTIONS = {
    "cuInit": [c_uint],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetUuid": [c_void_p, c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSynchronize": [],
    "cuImportExternalMemory": [POINTER(c_void_p), POINTER(_ExternalMemoryDesc)],
    "cuExternalMemoryGetMappedBuffer": [POINTER(c_ulonglong), c_void_p, POINTER(_ExternalBufferDesc)],
    "cuDestroyExternalMemory": [c_void_p],
    "cuMemFree_v2": [c_ulonglong],
    "cuMemcpyHtoD_v2": [c_ulonglong, c_void_p, c_size_t],
    "cuMemcpyDtoH_v2": [c_void_p, c_ulonglong, c_size_t],
}


class Cuda:
    """The CUDA device with this UUID. Its primary context, which PyTorch uses too, is made current on this thread."""

    def __init__(self, uuid: bytes) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from error
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = c_int, arguments
        self._call("cuInit", 0)
        self.index = self._find(uuid)
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device(self.index))
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            text = c_char_p()
            self._library.cuGetErrorName(code, byref(text))
            raise CudaError(f"{name}: {(text.value or b'error').decode()} ({code})")

    def _device(self, index: int) -> int:
        device = c_int()
        self._call("cuDeviceGet", byref(device), index)
        return device.value

    def _find(self, uuid: bytes) -> int:
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        found = []
        for index in range(count.value):
            text = ctypes.create_string_buffer(16)
            self._call("cuDeviceGetUuid", text, self._device(index))
            if text.raw == uuid:
                return index
            found.append(text.raw.hex())
        raise CudaError(f"no CUDA device has the UUID {uuid.hex()} of Tuff's device; there are {found or 'none'}")

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def upload(self, pointer: int, data: bytes) -> None:
        self._call("cuMemcpyHtoD_v2", pointer, data, len(data))

    def download(self, pointer: int, nbytes: int) -> bytes:
        data = ctypes.create_string_buffer(nbytes)
        self._call("cuMemcpyDtoH_v2", data, pointer, nbytes)
        return data.raw


class SharedMemory:
    """A tuff.Buffer created with exportable=True, mapped into CUDA's address space. Call close() before the buffer's
    context is closed."""

    def __init__(self, cuda: Cuda, buffer: object) -> None:
        self._cuda = cuda
        self.buffer = buffer
        info = buffer.export_fd()
        desc = _ExternalMemoryDesc(type=_OPAQUE_FD, size=info.memory_bytes, flags=_DEDICATED * info.dedicated)
        desc.handle.fd = info.fd
        self._memory = c_void_p()
        try:
            cuda._call("cuImportExternalMemory", byref(self._memory), byref(desc))
        except CudaError:
            os.close(info.fd)  # on success CUDA owns the descriptor
            raise
        mapped = c_ulonglong()
        view = _ExternalBufferDesc(offset=info.offset, size=info.bytes)
        try:
            cuda._call("cuExternalMemoryGetMappedBuffer", byref(mapped), self._memory, byref(view))
        except CudaError:
            cuda._call("cuDestroyExternalMemory", self._memory)
            raise
        self.pointer = mapped.value

    def close(self) -> None:
        if self.pointer:
            self._cuda._call("cuMemFree_v2", self.pointer)
            self._cuda._call("cuDestroyExternalMemory", self._memory)
            self.pointer = 0


class CudaArray:
    """An array that PyTorch, CuPy and Numba can use on the GPU without copying it."""

    def __init__(self, memory: SharedMemory, shape: tuple) -> None:
        self.memory = memory  # kept alive while a tensor uses it
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (memory.pointer, False),
            "strides": None,
            "version": 2,
        }
