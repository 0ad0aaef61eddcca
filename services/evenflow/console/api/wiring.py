"""Every part of the API with what it needs, behind the guard."""

from __future__ import annotations

from evenflow.console.access.admission import Admission
from evenflow.console.access.api import AccessRoutes
from evenflow.console.access.granting import Granting
from evenflow.console.access.recording import Recording
from evenflow.console.api.accounts import AccountRoutes
from evenflow.console.api.app import application
from evenflow.console.api.condition import ConditionRoutes
from evenflow.console.api.documents import DocumentRoutes
from evenflow.console.api.fleet import FleetRoutes
from evenflow.console.api.guard import Guard
from evenflow.console.api.letters import LetterRoutes
from evenflow.console.api.output import OutputRoutes
from evenflow.console.api.tail import TailRoutes
from evenflow.console.api.tasks import TaskRoutes
from evenflow.console.letters import Letters
from evenflow.console.live_load import LiveView
from evenflow.console.publishing import Publishing
from evenflow.console.service import Console
from evenflow.console.settings import ConsoleSettings
from evenflow.console.stores import EndedTasks, Invitations, Output
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.join_tokens import system_bytes
from evenflow.platform.service import EventService


def serve(
    host: EventService, console: Console, ended: EndedTasks, runtime: Runtime, settings: ConsoleSettings
) -> Guard:
    """The whole API as one ASGI application."""
    publishing = Publishing(console)
    condition = ConditionRoutes(console, host)
    app = application(
        [
            TaskRoutes(console, ended).router(),
            OutputRoutes(console, Output(runtime)).router(),
            FleetRoutes(console, publishing, LiveView(runtime)).router(),
            AccountRoutes(console).router(),
            DocumentRoutes(console, publishing).router(),
            LetterRoutes(console, Letters(console, console.reader, host.outlet)).router(),
            TailRoutes(console).router(),
            AccessRoutes(console, Granting(console, random_bytes=system_bytes), Invitations(runtime)).router(),
            condition.router(),
        ]
    )
    condition.guard = Guard(
        app,
        admission=Admission(settings, console.board.papers, runtime.clock),
        recording=Recording(console),
        hosts=settings.trusted_hosts,
        log=runtime.log,
    )
    return condition.guard
