"""The course of a run: records thrown in parts, each part at a fresh world, and what must hold afterwards.

Per part there are two worlds. In the first everything is thrown; all of it must be parked or applied, with nobody gone
and nothing left unread, also after a restart of every service, and a good task goes through. In the second only what
was parked there is thrown; it must leave no mark on what anybody believes.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from evenflow.events.streams import topics
from evenflow.hosting.registry import SERVICES
from evenflow.testkit.fuzz.records import Thrown, every_record
from evenflow.testkit.fuzz.surroundings import COMPARED_S
from evenflow.testkit.fuzz.world import Target, in_world

PART: Final = 1_000
READ_WITHIN_S: Final = 180
#: Worlds spent on finding the fewest records of a part that still fail.
SHRINKING_MAX: Final = 60
SHOWN_MAX: Final = 5
PROBLEMS_MAX: Final = 10
#: Rounds of throwing only what was parked: whether a request is refused may depend on what was thrown before it.
AGAIN_MAX: Final = 4
AFTER: Final = "after-all-that"

Say = Callable[[str], None]


@dataclass(slots=True)
class TopicFigures:
    """One topic's line."""

    thrown: int = 0
    parked: int = 0
    applied: int = 0
    refused: int = 0


@dataclass(slots=True)
class Figures:
    """What a run counted. `problems` are broken bounds, each in one line; empty is what is wanted."""

    topics: dict[str, TopicFigures] = field(default_factory=lambda: {one.name: TopicFigures() for one in topics()})
    ways: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    worlds: int = 0
    revoked: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def thrown(self) -> int:
        """Records that were generated and thrown."""
        return sum(one.thrown for one in self.topics.values())


@dataclass(slots=True)
class Outcome:
    """What came of one part in the first world."""

    problems: list[str]
    parked: dict[str, str]
    landed: dict[str, Thrown]
    refused: list[Thrown]
    revoked: int = 0


def fuzz_records(count: int, seed: int, say: Say, *, part: int = PART) -> Figures:
    """Generate and throw at least `count` records."""
    figures = Figures()
    records = every_record(count, seed)
    say(f"{len(records)} records generated for {len(figures.topics)} topics, seed {seed}")
    wanted = in_world(_state_of_nothing, seed)
    figures.worlds += 1
    for start in range(0, len(records), part):
        if len(figures.problems) >= PROBLEMS_MAX:
            say("enough problems; the rest is not thrown")
            break
        _part(records[start : start + part], seed, wanted, figures, say)
        say(f"{min(start + part, len(records))} thrown, {len(figures.problems)} problems")
    return figures


def _part(records: Sequence[Thrown], seed: int, wanted: dict[str, str], figures: Figures, say: Say) -> None:
    outcome = tried(records, seed)
    figures.worlds += 1
    _count(records, outcome, figures)
    if outcome.problems:
        few = shrunk(records, lambda some: bool(tried(some, seed).problems))
        figures.problems += [f"{problem}; {len(few)} records do it" for problem in tried(few, seed).problems]
        for one in few[:SHOWN_MAX]:
            say(f"  {described(one)}")
        return
    parked = [one for place, one in outcome.landed.items() if place in outcome.parked]
    for _ in range(AGAIN_MAX):
        marks, still = left_marks(parked, seed, wanted)
        figures.worlds += 1
        if len(still) == len(parked):
            break
        parked = still
    figures.compared += len(parked)
    if marks:
        few = shrunk(parked, lambda some: bool(left_marks(some, seed, wanted)[0]))
        found, _ = left_marks(few, seed, wanted)
        figures.problems.append(f"parked records changed {', '.join(found)}; {len(few)} records do it")
        for one in few[:SHOWN_MAX]:
            say(f"  {described(one)}")


def tried(records: Sequence[Thrown], seed: int) -> Outcome:
    """Throw records at a fresh world and look what is wrong afterwards."""
    try:
        return in_world(lambda target: _fire(target, records), seed)
    except Exception as error:  # noqa: BLE001  a world that breaks is what is looked for
        return Outcome([f"the world broke: {type(error).__name__}: {error}"[:400]], {}, {}, [])


async def _fire(target: Target, records: Sequence[Thrown]) -> Outcome:
    landed = await target.throw(records)
    problems = [f"{name}: {count} unread" for name, count in (await target.until_read(READ_WITHIN_S)).items()]
    if not problems:
        await target.restart(*SERVICES)
        left = await target.until_read(READ_WITHIN_S)
        problems += [f"{name}: {count} unread after a restart" for name, count in left.items()]
    if not problems:
        await target.submit(AFTER)
        answers = await target.heard_of(AFTER)
        if answers != 200:
            problems.append(f"a good task is not known afterwards: {answers}")
    revoked = [end for end in target.ends if "was revoked" in end.why]
    problems += [f"{end.name} ended: {end.why}" for end in target.ends if end not in revoked]
    problems += [
        f"unhandled: {context.get('message')}: {context.get('exception')!r}"[:400] for context in target.errors
    ]
    parked = await target.parked()
    problems += [
        f"unreadable and not parked: {described(one)[:200]}" for one in target.overlooked(landed, parked)[:SHOWN_MAX]
    ]
    return Outcome(list(dict.fromkeys(problems)), parked, landed.thrown, landed.refused, len(revoked))


async def _state_of_nothing(target: Target) -> dict[str, str]:
    await target.until(COMPARED_S)
    return await target.state()


def left_marks(records: Sequence[Thrown], seed: int, wanted: dict[str, str]) -> tuple[list[str], list[Thrown]]:
    """Parts of the state that differ from a world at which nothing was thrown, and which records were parked."""

    async def story(target: Target) -> tuple[list[str], list[Thrown]]:
        landed = await target.throw(records)
        await target.until(COMPARED_S)
        state = await target.state(landed.thrown)
        parked = await target.parked()
        marks = [name for name in state if state[name] != wanted[name]]
        return marks, [one for place, one in landed.thrown.items() if place in parked]

    return in_world(story, seed)


def shrunk(records: Sequence[Thrown], fails: Callable[[Sequence[Thrown]], bool]) -> list[Thrown]:
    """Few records that still fail: halves, quarters … left out as long as it fails without them."""
    kept = list(records)
    size, spent = max(1, len(kept) // 2), 0
    while spent < SHRINKING_MAX:
        start, before = 0, len(kept)
        while start < len(kept) and spent < SHRINKING_MAX and len(kept) > 1:
            fewer = kept[:start] + kept[start + size :]
            spent += 1
            if fewer and fails(fewer):
                kept = fewer
            else:
                start += size
        if size == 1 and len(kept) == before:
            break
        size = max(1, size // 2)
    return kept


def _count(records: Sequence[Thrown], outcome: Outcome, figures: Figures) -> None:
    figures.revoked += outcome.revoked
    for one in records:
        figures.topics[one.topic].thrown += 1
        figures.ways[one.how] += 1
    for one in outcome.refused:
        figures.topics[one.topic].refused += 1
    for place, one in outcome.landed.items():
        if place in outcome.parked:
            figures.topics[one.topic].parked += 1
            figures.reasons[outcome.parked[place].partition(":")[0]] += 1
        else:
            figures.topics[one.topic].applied += 1


def described(one: Thrown) -> str:
    """A record as it can be put into a scenario's `publish`."""
    value = one.value or b""
    whole = base64.b64encode(value).decode() if len(value) <= 2_000 else f"{len(value)} bytes"
    headers = {name: text for name, text in one.headers if name not in ("ce_source", "ce_subject", "correlation_id")}
    return f"{one.topic} key {one.key!r} ({one.how}{', signed' if one.sign else ''}) {headers} base64 {whole}"
