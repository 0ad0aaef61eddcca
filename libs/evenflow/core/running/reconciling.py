"""Desired set + held set → actions: what runs and is not desired stops, what is desired and does not run starts once.

A slot is one member of one task (tenant/task/member); a key names one attempt of it (tenant/task/attempt/member).
A slot holds one living attempt at a time: a newer attempt waits until the older one is proven gone. Attempts of a slot
only go up, and within an attempt the epoch only goes up; a wish that would go back is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evenflow.core.lifecycle.attempt import Wish


class Act(StrEnum):
    """What the agent does about one key."""

    START = "start"
    STOP = "stop"
    RECLAIM = "reclaim"
    #: Nothing of it is or ever was here: say at once that its place is free.
    ANSWER = "answer"
    REFUSE = "refuse"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One row of the desired set."""

    key: str
    slot: str
    attempt: int
    epoch: int
    wish: Wish


@dataclass(frozen=True, slots=True)
class HeldMember:
    """One row of what the agent holds. `wish` is the strongest applied; `reclaimed`: its place is proven free."""

    key: str
    slot: str
    attempt: int
    epoch: int
    wish: Wish
    reclaimed: bool


@dataclass(frozen=True, slots=True)
class Action:
    """What to do about a key, and why."""

    act: Act
    key: str
    reason: str = ""


_STRENGTH = {Wish.RUN: 0, Wish.STOP: 1, Wish.RECLAIM: 2}


def reconcile(
    wanted: Sequence[Wanted], held: Sequence[HeldMember], newest: Mapping[str, int], *, complete: bool = True
) -> list[Action]:
    """The actions that bring what is held to what is wanted, in order: ends before starts.

    `newest` is the highest attempt ever applied by slot. With `complete` False the wanted set is known to have holes,
    and nothing is stopped for not being in it.
    """
    by_key = {member.key: member for member in held}
    applied = dict(newest)
    ends: list[Action] = []
    starts: list[Action] = []
    for want in sorted(wanted, key=lambda row: (row.slot, -row.attempt, row.key)):
        member = by_key.get(want.key)
        if member is not None:
            ends += _of_held(want, member)
        elif want.wish is not Wish.RUN:
            ends.append(Action(Act.ANSWER, want.key))
        elif (newest_attempt := applied.get(want.slot, 0)) >= want.attempt:
            ends.append(Action(Act.REFUSE, want.key, _below(want, newest_attempt)))
        else:
            applied[want.slot] = want.attempt
            starts.append(Action(Act.START, want.key))
    starting = {action.key for action in starts}
    fresh = {want.slot: want for want in wanted if want.key in starting}
    blocked: dict[str, None] = {}
    wanted_keys = {want.key for want in wanted}
    for member in sorted(held, key=lambda row: row.key):
        if member.slot in fresh and not member.reclaimed:
            blocked[fresh[member.slot].key] = None
            if member.wish is Wish.RUN:
                ends.append(Action(Act.STOP, member.key, f"attempt {fresh[member.slot].attempt} takes its place"))
        elif complete and member.key not in wanted_keys:
            if member.reclaimed:
                ends.append(Action(Act.FORGET, member.key))
            elif member.wish is Wish.RUN:
                ends.append(Action(Act.STOP, member.key, "is not desired any more"))
    return [*_once(ends), *(action for action in starts if action.key not in blocked)]


def _of_held(want: Wanted, member: HeldMember) -> list[Action]:
    if want.epoch < member.epoch:
        return [Action(Act.REFUSE, want.key, f"epoch {want.epoch} is below {member.epoch}, which was applied here")]
    if member.reclaimed or _STRENGTH[want.wish] <= _STRENGTH[member.wish]:
        return []
    return [Action(Act.STOP if want.wish is Wish.STOP else Act.RECLAIM, want.key)]


def _below(want: Wanted, newest: int) -> str:
    if newest == want.attempt:
        return f"attempt {want.attempt} was applied here before and is over"
    return f"attempt {want.attempt} is below {newest}, which was applied here"


def _once(actions: list[Action]) -> list[Action]:
    """One action a key, the first: a wish of the decider comes before the agent's own conclusions."""
    kept: dict[str, Action] = {}
    for action in actions:
        kept.setdefault(action.key, action)
    return list(kept.values())
