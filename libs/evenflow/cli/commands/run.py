"""`evenflow run SERVICE`: one service in a process of its own, on connected servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenflow.cli.options import Form, FormOption, JsonOption, wants_json
from evenflow.cli.output import say, show_json


def run(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="A service's name, as placement.")],
    settings: Annotated[Path | None, typer.Option(help="YAML or TOML with settings of the host and services.")] = None,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Check all settings, print them without secrets, and end.")
    ] = False,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Run one service until it is told to stop. Log and stores: EVENFLOW_HOST_LOG, _DOCUMENTS, _LIVE, _OBJECTS.

    It waits for its servers, says which one it waits for, and answers /health, /ready and /metrics. Exit codes: 0
    told to stop, 2 wrong settings, 13 another leads, 14 the seat was lost, 15 a round of unknown fate, 16 stuck, 17
    too much unwritten; start it again after any of the last five.
    """
    from evenflow.hosting.single import configure, run_service

    configured = configure(service, settings)
    if not check_config:
        raise typer.Exit(run_service(configured))
    shown = configured.shown()
    if wants_json(output, json_flag):
        show_json(shown)
        return
    for part, values in shown.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            say(f"{part}.{name} = {value}")
    say(f"the settings of {service} are right")
