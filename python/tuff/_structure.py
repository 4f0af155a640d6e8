"""The base class of tuff.h's structures."""

from __future__ import annotations

import ctypes


class Structure(ctypes.Structure):
    """A structure with struct_size already set; other fields are given by keyword."""

    def __init__(self, **fields: object) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)
