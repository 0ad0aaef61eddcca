"""Silence is not death: who is suspect, who is lost, and when the observer itself is blind.

All times are the receiver's monotonic milliseconds. A node silent for `suspect_ms` is suspect, for `tolerance_ms` lost.
The observer is blind while its own beacon has been missing for one tolerance, or when silence is so widespread that the
fault is more likely ours: every node of two or more sites, or every node of a pool of several, fell silent within one
tolerance of each other. While blind nothing expires, for at most `blind_max_ms`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from evenflow.core.lifecycle.node import Reach


@dataclass(frozen=True, slots=True)
class Contact:
    """When a node was last heard, and what is believed of it."""

    site: str
    last_ms: int
    reach: Reach


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Limits of silence."""

    suspect_ms: int
    tolerance_ms: int
    blind_max_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """`changes` are new beliefs by node, in order of name; `blind_since_ms` is None when the observer sees."""

    blind_since_ms: int | None
    blind_why: str
    changes: tuple[tuple[str, Reach], ...]


def judge(
    contacts: Mapping[str, Contact], *, beacon_ms: int, blind_since_ms: int | None, now_ms: int, limits: Tolerance
) -> Verdict:
    """What follows from everybody's silence at `now_ms`. `beacon_ms` is when the own beacon last came back."""
    why = _blind(contacts, beacon_ms=beacon_ms, now_ms=now_ms, limits=limits)
    since = (blind_since_ms if blind_since_ms is not None else now_ms) if why else None
    frozen = since is not None and now_ms - since < limits.blind_max_ms
    changes: list[tuple[str, Reach]] = []
    for name in sorted(contacts):
        contact = contacts[name]
        silent_ms = now_ms - contact.last_ms
        if contact.reach is Reach.LOST or silent_ms < limits.suspect_ms:
            continue
        if silent_ms >= limits.tolerance_ms and not frozen:
            changes.append((name, Reach.LOST))
        elif contact.reach is Reach.OK:
            changes.append((name, Reach.SUSPECT))
    return Verdict(since, why, tuple(changes))


def _blind(contacts: Mapping[str, Contact], *, beacon_ms: int, now_ms: int, limits: Tolerance) -> str:
    if now_ms - beacon_ms >= limits.tolerance_ms:
        return "the observer's own beacon is missing"
    hearing: dict[str, bool] = {}
    newest: dict[str, int] = {}
    for name in sorted(contacts):
        contact = contacts[name]
        if contact.reach is Reach.LOST:
            continue
        silent = now_ms - contact.last_ms >= limits.suspect_ms
        hearing[contact.site] = hearing.get(contact.site, False) or not silent
        newest[contact.site] = max(newest.get(contact.site, 0), contact.last_ms)
    silent_sites = sorted(newest[site] for site, heard in hearing.items() if not heard)
    together = any(later - earlier <= limits.tolerance_ms for earlier, later in itertools.pairwise(silent_sites))
    if together:
        return f"{len(silent_sites)} sites fell silent together"
    alive = [c for c in contacts.values() if c.reach is not Reach.LOST]
    if len(alive) > 1 and silent_sites and not any(hearing.values()):
        lasts = [c.last_ms for c in alive]
        if max(lasts) - min(lasts) <= limits.tolerance_ms:
            return "every node of the pool fell silent together"
    return ""
