"""What the structures of tuff.h have in common."""

from __future__ import annotations

import ctypes


class Structure(ctypes.Structure):
    """A structure that begins with struct_size, already set; other fields by keyword."""

    def __init__(self, **fields: object) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)
