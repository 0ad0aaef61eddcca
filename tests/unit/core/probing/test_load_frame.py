"""The packed load frame: what is packed is unpacked, and bytes that are no whole frame are refused."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.core.probing.load_frame import DEVICE_ROW, NODE_ROW, LoadFrame, pack, unpack


def frame() -> LoadFrame:
    nodes = np.array([(5, 1_000, 2**30, 1, 0), (6, 0, 0, 0, 2)], NODE_ROW)
    devices = np.array([(2**20, 500, 250, 0), (0, 0, 0, 1), (7, 1_000, 1_000, 2)], DEVICE_ROW)
    return LoadFrame(("n1", "n-2"), nodes, devices)


def test_a_frame_that_was_packed_is_unpacked_the_same() -> None:
    """Names, node rows and device rows, in order; an empty site too."""
    found = unpack(pack(frame()))
    assert found.names == ("n1", "n-2")
    assert found.nodes.tolist() == frame().nodes.tolist()
    assert found.devices.tolist() == frame().devices.tolist()
    empty = unpack(pack(LoadFrame((), np.zeros(0, NODE_ROW), np.zeros(0, DEVICE_ROW))))
    assert (empty.names, len(empty.nodes), len(empty.devices)) == ((), 0, 0)


def test_bytes_that_are_no_whole_frame_are_refused() -> None:
    """Cut at any byte, longer than it says, of another version: ValueError, never a frame."""
    data = pack(frame())
    for end in range(len(data)):
        with pytest.raises(ValueError, match="load frame"):
            unpack(data[:end])
    for wrong in (data + b"x", b"EVLX" + data[4:], data[:4] + b"\x02\x00" + data[6:]):
        with pytest.raises(ValueError, match="load frame"):
            unpack(wrong)
