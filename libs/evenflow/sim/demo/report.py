"""The closing tables of the demo, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from evenflow.core.units import MILLI, money_text
from evenflow.sim.demo.figures import Figures
from evenflow.sim.demo.fleet import LOAD_MILLI

GB: Final = 10**9
SAID: Final = (
    "Recorded: nodes, tasks and run times (openb), links and link prices (skyplane), prices of T4 and V100. "
    "Synthetic, by one fixed rule each: home sites (seeded hash), dataset sizes, other device prices, promised run "
    "times, checkpoints every half hour. All devices count as equally fast. Nothing was tuned. See NOTICE."
)


def show(screen: Console, joined: Figures, isolated: Figures, folder: Path | None) -> None:
    """Print everything."""
    screen.print(_work(joined, isolated))
    screen.print(_waits(joined, isolated))
    screen.print(_crossings(joined))
    screen.print(_bill(joined))
    whole = "every line follows from the one before" if joined.bill_chain_whole else "THE CHAIN IS BROKEN"
    screen.print(f"The bill is made from the billing topic alone; {whole}.", soft_wrap=True)
    screen.print(SAID, style="dim", soft_wrap=True)
    if folder is None:
        screen.print("Keep the log with: evenflow demo --out DIR (events.jsonl holds every record on every topic)")
    else:
        screen.print(f"Look next: {folder}/joined/events.jsonl, timeline.jsonl, ledger.jsonl", soft_wrap=True)
        screen.print(f"Check every figure: python tests/demo/recompute.py {folder}", soft_wrap=True)
    screen.print(
        "Then: evenflow dev (the same services, live), evenflow scenario verbs (rehearse an outage)", soft_wrap=True
    )


def _work(joined: Figures, isolated: Figures) -> Table:
    table = Table(title="Four sites, one pool: joined against isolated", title_justify="left", box=box.SIMPLE_HEAD)
    for column, side in (("", "left"), ("isolated", "right"), ("joined", "right")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]  # rich's literal
    rows = (
        ("tasks submitted", str(isolated.submitted), str(joined.submitted)),
        ("no node at home could ever hold it", str(isolated.impossible_at_home), str(joined.impossible_at_home)),
        ("placed", str(isolated.placed), str(joined.placed)),
        ("finished", str(isolated.succeeded), str(joined.succeeded)),
        ("mean wait", f"{isolated.wait_mean_s:.1f} s", f"{joined.wait_mean_s:.1f} s"),
        ("95th percentile of waits", f"{isolated.wait_p95_s:.1f} s", f"{joined.wait_p95_s:.1f} s"),
        ("device use until the last arrival", f"{isolated.device_use_pct:.1f} %", f"{joined.device_use_pct:.1f} %"),
        ("attempts lost with a node", str(isolated.lost_attempts), str(joined.lost_attempts)),
        ("  resumed from a checkpoint", str(isolated.resumed_attempts), str(joined.resumed_attempts)),
        ("  work kept", f"{isolated.resumed_work_s} s", f"{joined.resumed_work_s} s"),
    )
    for row in rows:
        table.add_row(*row)
    return table


def _waits(joined: Figures, isolated: Figures) -> Table:
    table = Table(title="Waits by home site, mean / 95th percentile", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("site", "isolated load", "isolated", "joined"):
        table.add_column(column, justify="left" if column == "site" else "right")
    for site in sorted(isolated.wait_by_site, key=lambda one: -LOAD_MILLI[one]):
        alone, together = isolated.wait_by_site[site], joined.wait_by_site.get(site, (0.0, 0.0))
        table.add_row(
            site,
            f"{LOAD_MILLI[site] / MILLI:.1f}",
            f"{alone[0]:.1f} / {alone[1]:.1f} s",
            f"{together[0]:.1f} / {together[1]:.1f} s",
        )
    return table


def _crossings(joined: Figures) -> Table:
    found = joined.crossings
    table = Table(title="Crossings: running away from the data", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column("", justify="right")
    rows = (
        ("taken, settled", f"{found.taken}, {found.settled}"),
        ("moved", f"{found.bytes / GB:.0f} GB for {money_text(found.cost_micro)} USD"),
        ("gain predicted", f"{found.predicted_gain_ms // MILLI} s"),
        ("gain counted", f"{found.actual_gain_ms // MILLI} s"),
        ("refused: no gain", str(found.refused_no_gain)),
        ("refused: gain within the margin", str(found.refused_within_margin)),
    )
    for row in rows:
        table.add_row(*row)
    return table


def _bill(joined: Figures) -> Table:
    table = Table(title="The bill by queue", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("queue")
    table.add_column("USD", justify="right")
    for queue, amount in joined.bill_micro.items():
        table.add_row(queue, money_text(amount))
    table.add_row("total", money_text(sum(joined.bill_micro.values())), style="bold")
    return table
