"""Numbers in words: exact values with the unit that suits their size."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.units import milli_text, money_text

_BINARY: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SPANS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000))


def size(count: int) -> str:
    """Bytes, rounded to a tenth of a binary unit."""
    for unit, scale in _BINARY:
        if abs(count) >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def span(milliseconds: int | None) -> str:
    """A duration in its two largest units."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    for index, (unit, scale) in enumerate(_SPANS):
        if milliseconds >= scale:
            whole, rest = divmod(milliseconds, scale)
            below, step = _SPANS[index + 1] if index + 1 < len(_SPANS) else ("s", 1_000)
            return f"{whole} {unit} {rest // step} {below}"
    return f"{milliseconds} ms"


def rate(bits: int) -> str:
    """Bits per second."""
    for unit, scale in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if bits >= scale:
            return f"{bits / scale:.4g} {unit}"
    return f"{bits} bit/s"


def money(micro: int, currency: str = "") -> str:
    """Money, exact."""
    return f"{money_text(micro)} {currency}".strip()


def cores(milli: int) -> str:
    """Cores or devices, exact."""
    return milli_text(milli)


def reason(row: dict[str, Any]) -> str:
    """One blocker: name, what was short, needed against there."""
    text = str(row.get("reason", ""))
    dimension = row.get("dimension")
    if dimension and dimension != text:
        text += f" ({dimension})"
    if row.get("needed"):
        text += f": needs {row['needed']}"
        if row.get("available"):
            text += f", {row['available']} there"
    elif row.get("available"):
        text += f": {row['available']}"
    if row.get("nodes"):
        text += f" [{row['nodes']} nodes]"
    return text


def clock(milliseconds: int) -> str:
    """A wall-clock time, local, to the second."""
    from datetime import datetime

    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
