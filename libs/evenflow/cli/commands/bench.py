"""`evenflow bench NAME`: one JSON object with the figure, its spread, and a floor of the same run."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import Annotated, Any

import typer

from evenflow.cli.exits import PLANNED, Stop, unavailable
from evenflow.cli.options import Form, FormOption, JsonOption, wants_json
from evenflow.cli.output import facts, show_json


class Bench(StrEnum):
    """What can be measured. Those without a module here are planned."""

    PATH = "path"
    TELEMETRY = "telemetry"
    STATUS = "status"
    EXPLORE = "explore"
    ENGINE = "engine"
    GANG = "gang"
    MEMORY = "memory"
    RECOVER = "recover"
    EXPLAIN = "explain"


#: name → module and function, and the options it takes.
READY: dict[Bench, tuple[str, str, tuple[str, ...]]] = {
    Bench.PATH: ("evenflow.hosting.benches.path", "path_bench", ("nodes", "tasks", "rate", "profile", "repetitions")),
    Bench.TELEMETRY: ("evenflow.hosting.benches.telemetry", "telemetry_bench", ("nodes", "profile", "repetitions")),
    Bench.RECOVER: ("evenflow.hosting.benches.recover", "recover_bench", ("nodes", "tasks", "profile")),
    Bench.STATUS: ("evenflow.hosting.benches.status", "status_bench", ("waiting", "nodes", "repetitions")),
    Bench.EXPLORE: ("evenflow.sim.explore.command", "explore_bench", ("seeds", "jobs")),
}


def bench(
    name: Annotated[Bench, typer.Argument(metavar="NAME", help="path, telemetry, status, recover or explore.")],
    nodes: Annotated[int | None, typer.Option(min=1, max=100_000)] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="path: tasks at saturation; recover: live tasks.")
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="path: tasks a second, paced.")] = None,
    profile: Annotated[str | None, typer.Option(help="path, telemetry, recover: embedded or server.")] = None,
    waiting: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="status: tasks that wait.")] = None,
    repetitions: Annotated[int | None, typer.Option(min=1, max=100)] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="explore: worlds, from seed 0.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=256, help="explore: processes.")] = None,
    data: Annotated[str, typer.Option(help="A folder of recorded data, for benches that use some.")] = "",
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Measure, and print one JSON object."""
    if name not in READY:
        raise Stop(PLANNED, f"the bench {name} is planned", way_out=f"Ready are {', '.join(READY)}.")
    module, function, known = READY[name]
    given: dict[str, Any] = {
        "nodes": nodes,
        "tasks": tasks,
        "rate": rate,
        "profile": profile,
        "waiting": waiting,
        "repetitions": repetitions,
        "seeds": seeds,
        "jobs": jobs,
    }
    wrong = [option for option, value in given.items() if value is not None and option not in known]
    if wrong:
        raise Stop(2, f"--{wrong[0]} means nothing to {name}", way_out=f"It takes {', '.join(known)}.")
    try:
        run = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise unavailable(f"the bench {name}") from error
    del data  # the benches that are ready make their own load
    found: dict[str, Any] = run(**{option: value for option, value in given.items() if value is not None})
    if wants_json(output, json_flag):
        show_json(found)
    else:
        facts(found.items())
