"""What the demo shows: a line of progress a world, and the closing tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenflow.core.units import MILLI, money_text

Figures = Mapping[str, Any]

_GB: Final = 10**9
_ORIGIN: Final = """\
Recorded: nodes, tasks and their run times (a production accelerator cluster), latency, throughput and price between the
four regions, USD per hour of T4 (0.82) and V100 (1.00). Arrivals are compressed to 6 h; run times are kept.
Synthetic, by one fixed rule each: home sites (seeded hash), dataset sizes (5 to 160 GB), checkpoints every 30 minutes,
the other devices' prices; all devices count as equally fast.
Isolated = the same engine, each task pinned to its home."""


def progress(told: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    """How far each world is."""
    table = _table("world", "> virtual time", "> placed", "> waiting", "> running", "> finished")
    for name, said in told.items():
        time = f"{said['t'] // 3_600} h {said['t'] % 3_600 // 60:02} min" if said else "starting"
        table.add_row(name, time, *(str(said.get(key, "")) for key in ("placed", "waiting", "running", "finished")))
    return table


def closing(figures: Mapping[str, Figures], folder: Path | None) -> Iterator[RenderableType]:
    """The closing tables, one after the other."""
    isolated, joined = figures["isolated"], figures["joined"]
    yield _headed("What joining four sites was worth", _totals(isolated, joined))
    yield _headed("Wait by home site, seconds (mean and 95th percentile)", _sites(isolated, joined))
    yield _headed("Crossings: tasks that ran away from their data", _crossings(joined))
    yield _headed("Bill by queue, USD, rebuilt from the billing topic alone", _bill(isolated, joined))
    yield _headed("What is recorded and what is not", Text(_ORIGIN))
    yield _headed("Where to look next", Text("\n".join(_next(folder))))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix("> "), justify="right" if column.startswith(">") else "left")
    return table


def _headed(title: str, body: RenderableType) -> RenderableType:
    return Group(Text(title, style="bold"), body, Text())


def _totals(isolated: Figures, joined: Figures) -> Table:
    table = _table("", "> isolated", "> joined")

    def row(name: str, shown: Callable[[Figures], str]) -> None:
        table.add_row(name, shown(isolated), shown(joined))

    row("tasks submitted", lambda f: f"{f['submitted']:,}")
    row("  of these too large for their home", lambda f: f"{f['impossible_at_home']:,}")
    row("placed", lambda f: f"{f['placed']:,}")
    row("finished well", lambda f: f"{f['succeeded']:,}")
    row("mean wait", lambda f: f"{f['wait_mean_s']:,.1f} s")
    row("wait, 95th percentile", lambda f: f"{f['wait_p95_s']:,.1f} s")
    row("device use until the last arrival", lambda f: f"{f['device_use_pct']:.1f} %")
    row("last task finished after", lambda f: f"{f['finished_s'] / 3_600:.1f} h")
    row("attempts lost with the node that failed", lambda f: f"{f['lost_attempts']:,}")
    row("attempts that resumed from a checkpoint", lambda f: f"{f['resumed_attempts']:,}")
    row("work not done twice", lambda f: f"{f['resumed_work_s'] / 60:,.0f} min")
    return table


def _sites(isolated: Figures, joined: Figures) -> Table:
    table = _table("home", "> isolated mean", "> isolated p95", "> joined mean", "> joined p95")
    for home, (mean, p95) in isolated["wait_by_site"].items():
        there = joined["wait_by_site"].get(home, (0.0, 0.0))
        table.add_row(home, f"{mean:,.1f}", f"{p95:,.1f}", f"{there[0]:,.1f}", f"{there[1]:,.1f}")
    return table


def _crossings(joined: Figures) -> Table:
    crossings = joined["crossings"]
    gain = crossings["predicted_gain_ms"] / MILLI, crossings["actual_gain_ms"] / MILLI
    table = _table("", "")
    table.add_row("taken, and settled in the ledger", f"{crossings['taken']}, {crossings['settled']}")
    table.add_row("carried", f"{crossings['bytes'] / _GB:,.1f} GB for {_money(crossings['cost_micro'])} USD")
    table.add_row("gain, predicted and actual", f"{gain[0] / 60:,.1f} min, {gain[1] / 60:,.1f} min")
    table.add_row("refused: waiting at home was faster", str(crossings["refused_no_gain"]))
    table.add_row("refused: gain within the policy's margin", str(crossings["refused_within_margin"]))
    return table


def _bill(isolated: Figures, joined: Figures) -> Table:
    table = _table("queue", "> isolated", "> joined")
    bills = isolated["bill_micro"], joined["bill_micro"]
    for queue in sorted({**bills[0], **bills[1]}):
        table.add_row(queue, *(_money(bill.get(queue, 0)) for bill in bills))
    table.add_row("chain of every queue", *(_chain(one) for one in (isolated, joined)))
    return table


def _chain(figures: Figures) -> str:
    return "whole" if figures["bill_chain_whole"] else "BROKEN"


def _money(micro: int) -> str:
    """To the cent, half up; the ledger itself keeps micro-units."""
    return f"{money_text((micro + 5_000) // 10_000 * 10_000)}"


def _next(folder: Path | None) -> Iterator[str]:
    if folder is None:
        yield "evenflow demo --out DIR                      keep both worlds' logs"
        folder = Path("DIR")
    yield f"python tests/demo/recompute.py {folder}     every figure again, from the log alone"
    yield f"less {folder}/joined/timeline.jsonl          every change of a task, node, link, checkpoint"
    yield f"evenflow scenario run {folder}/joined/scenario.json   the same world again, or yours after an edit"
    yield "evenflow dev                                  the same services in one process, live"
