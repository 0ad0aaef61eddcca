"""The packed live-load frame of one site: one row per node, one row per device, a time per node row.

Layout, little-endian: magic `EVLF`, version, node count, device count; the node names as JSON; node columns
(time_ms, cpu_used_milli, memory_used_bytes, running_count, first_device: int64 each); device columns (used_milli,
utilisation_milli: int32; memory_used_bytes: int64; state: uint8). Placement reads frames for scores only, never for
admission.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

MAGIC: Final = b"EVLF"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<4sHIII")

NODE_ROW: Final = np.dtype(
    [("time_ms", "<i8"), ("cpu_used_milli", "<i8"), ("memory_used_bytes", "<i8"), ("running", "<i8"), ("first", "<i8")]
)
DEVICE_ROW: Final = np.dtype(
    [("memory_used_bytes", "<i8"), ("used_milli", "<i4"), ("utilisation_milli", "<i4"), ("state", "u1")]
)

Rows = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class LoadFrame:
    """One site's load. `nodes` has NODE_ROW, `devices` DEVICE_ROW; a node's devices start at its `first`."""

    names: tuple[str, ...]
    nodes: Rows
    devices: Rows


def pack(frame: LoadFrame) -> bytes:
    """A frame as bytes."""
    names = json.dumps(list(frame.names), separators=(",", ":")).encode()
    head = _HEAD.pack(MAGIC, VERSION, len(frame.nodes), len(frame.devices), len(names))
    return b"".join((head, names, frame.nodes.tobytes(), frame.devices.tobytes()))


def unpack(data: bytes) -> LoadFrame:
    """Bytes as a frame; ValueError when they are none."""
    if len(data) < _HEAD.size:
        raise ValueError("a load frame is longer than this")
    magic, version, node_count, device_count, name_bytes = _HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise ValueError("not a load frame of version 1")
    start = _HEAD.size
    middle = start + name_bytes
    end = middle + node_count * NODE_ROW.itemsize
    if len(data) != end + device_count * DEVICE_ROW.itemsize:
        raise ValueError("the load frame is cut off")
    names = tuple(json.loads(data[start:middle]))
    nodes = np.frombuffer(data, NODE_ROW, node_count, middle)
    devices = np.frombuffer(data, DEVICE_ROW, device_count, end)
    return LoadFrame(names, nodes, devices)
