"""`evenflow nodes`: list, show, cordon, uncordon, drain, revoke, invite, uninvite."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import (
    URL,
    Form,
    FormOption,
    JsonOption,
    LimitOption,
    ReasonOption,
    UrlOption,
    seconds_of,
    wants_json,
)
from evenflow.cli.output import facts, say, show_json, state_cell, table

app = typer.Typer(invoke_without_command=True, help="Nodes: list, show, and what operators ask of them.")

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="The node's id.")]


@app.callback()
def nodes(
    context: typer.Context,
    site: Annotated[str, typer.Option(help="Nodes of this site.")] = "",
    reach: Annotated[str, typer.Option(help="ok, suspect or lost.")] = "",
    limit: LimitOption = 200,
    after: Annotated[str, typer.Option(help="The `next` of the page before.")] = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """List nodes, or work on one with a command."""
    from evenflow.client import calls

    if context.invoked_subcommand is not None:
        context.obj = url
        return
    answer = fetch(url, calls.nodes(site=site, reach=reach, limit=limit, after=after))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        (
            "NODE",
            "SITE",
            "REACH",
            "ADMINISTRATION",
            "HEALTH",
            "MODEL",
            ">DEVICES FREE",
            ">CORES FREE",
            ">TASKS",
            ">LOAD SEEN",
        ),
        (_line(row) for row in answer["items"]),
        empty="no node is registered; join one with: evenflow agent --url … --token …",
    )
    for row in answer["refused"]:
        say(f"refused: {row['node']}: {row['path']}: {row['problem']}")
    if answer["next"]:
        say(f"more: evenflow nodes --after {answer['next']}")


def _line(row: dict[str, Any]) -> tuple[Any, ...]:
    load = row["load"]
    health = row["health"] + (f" ({row['health_reason']})" if row["health_reason"] else "")
    return (
        row["node"],
        row["site"],
        state_cell(row["reach"], " (blind)" if row["blind"] else ""),
        "revoked" if row["revoked"] else row["administration"],
        health,
        row["model"],
        _of(row, "devices_milli"),
        _of(row, "cpu_milli"),
        len(row["running"]),
        words.span(load["age_ms"]) + " ago" if load else "never",
    )


def _of(row: dict[str, Any], amount: str) -> str:
    return f"{words.cores(row['free'][amount])} of {words.cores(row['capacity'][amount])}"


@app.command()
def show(
    node: NodeArgument, url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False
) -> None:
    """Show one node with everything it holds."""
    from evenflow.client import calls

    row = fetch(url, calls.node(node))
    if wants_json(output, json_flag):
        show_json(row)
        return
    facts(
        (
            ("node", row["node"]),
            ("site", row["site"]),
            ("rack", row["rack"]),
            ("state", f"{row['reach']}, {row['administration']}, {row['health']}"),
            ("takes work", "yes" if row["takes_work"] else "no"),
            ("note", row["note"]),
            ("devices", f"{_of(row, 'devices_milli')} {row['model']} free"),
            ("cores", f"{_of(row, 'cpu_milli')} free"),
            (
                "memory",
                f"{words.size(row['free']['memory_bytes'])} of {words.size(row['capacity']['memory_bytes'])} free",
            ),
            ("disk", f"{words.size(row['free']['disk_bytes'])} of {words.size(row['capacity']['disk_bytes'])} free"),
            ("price", f"{words.money(row['price_per_hour_micro'])} per device and hour"),
        )
    )
    table(
        ("TASK", ">ATTEMPT", ">MEMBER", "WISH", ">CORES", "DEVICES"),
        (
            (
                held["task"],
                held["attempt"],
                held["member"],
                held["wish"],
                words.cores(held["cpu_milli"]),
                ", ".join(f"{d['index']}: {words.cores(d['milli'])}" for d in held["devices"]),
            )
            for held in row["holdings"]
        ),
        empty="it holds nothing",
    )


def _act(node: str, action: str, reason: str, deadline: float | None, url: str, *, as_json: bool) -> None:
    from evenflow.client import calls

    answer = fetch(url, calls.administer(node, action, reason, deadline))
    if as_json:
        show_json(answer)
    else:
        say(f"{action} of {node} requested; evenflow nodes show {node} shows when it is done")


@app.command()
def cordon(
    node: NodeArgument,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Send no new work there; what runs goes on."""
    _act(node, "cordon", reason, None, url, as_json=wants_json(output, json_flag))


@app.command()
def uncordon(
    node: NodeArgument,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Open a node again, after a cordon or a drain."""
    _act(node, "uncordon", reason, None, url, as_json=wants_json(output, json_flag))


@app.command()
def drain(
    node: NodeArgument,
    deadline: Annotated[float | None, typer.Option(min=0, help="Seconds until what runs must have moved.")] = None,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Send no new work there and move what runs elsewhere."""
    _act(node, "drain", reason, deadline, url, as_json=wants_json(output, json_flag))


@app.command()
def revoke(
    node: NodeArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Take a node out for good: nothing it says counts from then on."""
    if not yes:
        typer.confirm(f"Take {node} out for good?", abort=True, err=True)
    _act(node, "revoke", reason, None, url, as_json=wants_json(output, json_flag))


@app.command()
def invite(
    expires: Annotated[str, typer.Option("--expires", help="How long it may be used: 1d, 2h; at most 30d.")] = "1d",
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Make a one-time join token for a node. It is printed once: evenflow agent --url … --token TOKEN."""
    from evenflow.client import calls

    answer = fetch(url, calls.invite(seconds_of(expires, "--expires"), reason))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    say(answer["token"])
    until = words.clock(answer["expires_ms"])
    typer.echo(
        f"for one node until {until}; take it back with: evenflow nodes uninvite {answer['invitation']}", err=True
    )


@app.command()
def uninvite(
    invitation: Annotated[str, typer.Argument(metavar="ID", help="As `nodes invite` said, or `evenflow changes`.")],
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Take an unused join token back."""
    from evenflow.client import calls

    answer = fetch(url, calls.uninvite(invitation, reason))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        say(f"the join token {invitation} is taken back")
