"""Writes GGUF v3, the file format of llama.cpp: metadata, then tensors."""

import struct
from enum import IntEnum

import numpy as np

MAGIC, VERSION = 0x46554747, 3
ALIGNMENT = 32
Q8_BLOCK = 32


class Kind(IntEnum):
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9


class TensorType(IntEnum):
    F32 = 0
    Q8_0 = 8


PACKED = {Kind.UINT32: "<I", Kind.INT32: "<i", Kind.FLOAT32: "<f", Kind.BOOL: "<?"}


def _string(text):
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(kind, value):
    return _string(value) if kind == Kind.STRING else struct.pack(PACKED[kind], value)


def _padding(length):
    return b"\0" * (-length % ALIGNMENT)


def quantized(matrix):
    """Q8_0: blocks of 32 numbers, each a half-precision scale and 32 bytes."""
    blocks = matrix.reshape(-1, Q8_BLOCK).astype(np.float32)
    scales = np.abs(blocks).max(1) / 127
    divisors = np.where(scales > 0, scales, 1)[:, None]
    levels = np.clip(np.rint(blocks / divisors), -127, 127).astype(np.int8)
    packed = np.zeros((len(blocks), 2 + Q8_BLOCK), np.uint8)
    packed[:, :2] = scales.astype(np.float16).view(np.uint8).reshape(-1, 2)
    packed[:, 2:] = levels.view(np.uint8)
    return packed.tobytes()


class Writer:
    def __init__(self):
        self.metadata = []
        self.tensors = []

    def add(self, key, kind, value):
        self.metadata.append(_string(key) + struct.pack("<I", kind) + _value(kind, value))

    def add_array(self, key, kind, values):
        head = struct.pack("<IIQ", Kind.ARRAY, kind, len(values))
        self.metadata.append(_string(key) + head + b"".join(_value(kind, v) for v in values))

    def add_tensor(self, name, array):
        """Matrices are quantized, vectors stay as they are."""
        if array.ndim == 1:
            self.tensors.append((name, array.shape, TensorType.F32, array.astype("<f4").tobytes()))
        else:
            self.tensors.append((name, array.shape, TensorType.Q8_0, quantized(array)))

    def to_bytes(self):
        head = struct.pack("<IIQQ", MAGIC, VERSION, len(self.tensors), len(self.metadata))
        head += b"".join(self.metadata)
        data = b""
        for name, shape, tensor_type, content in self.tensors:
            sizes = b"".join(struct.pack("<Q", size) for size in reversed(shape))
            head += _string(name) + struct.pack("<I", len(shape)) + sizes
            head += struct.pack("<IQ", tensor_type, len(data))
            data += content + _padding(len(content))
        return head + _padding(len(head)) + data
