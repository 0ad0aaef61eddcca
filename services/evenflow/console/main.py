"""The console's composition root."""

from __future__ import annotations

from pathlib import Path

from evenflow.console.api.wiring import serve
from evenflow.console.archive import Archive
from evenflow.console.letters import Letters
from evenflow.console.log_reader import LogReader
from evenflow.console.measures import Measures
from evenflow.console.projection.board import FOLLOWED, Board
from evenflow.console.service import Console
from evenflow.console.settings import ConsoleSettings
from evenflow.console.stores import EndedTasks
from evenflow.console.warden import GROUP, Warden
from evenflow.events.streams import BILLING
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.identity import load_key
from evenflow.platform.security.sealing import Sealer
from evenflow.platform.service import EventService, Step


class Closing:
    """Ends open streams before anything else stops."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Close the feed."""
        self._board.feed.close()


def build(runtime: Runtime, settings: ConsoleSettings) -> EventService:
    """Put the console together."""
    host = EventService(runtime)
    board = Board(settings, runtime.instance)
    reader = LogReader(runtime)
    key = settings.signing_key_file
    sealer = Sealer(settings.signer, load_key(Path(key))) if key else None
    console = Console(runtime, settings, board, host.outlet, reader, sealer)
    ended = EndedTasks(runtime)
    for streams in FOLLOWED:
        # The ledger is shown from its first line, however old; what else expired stands in the documents.
        host.follow(streams, board.apply, past=[stream for stream in streams if stream is BILLING])
    host.parts += [reader, Warden(runtime, host.inlet.dead_letters, host.end), Closing(board)]
    host.steps = [Step("archive", settings.archive_period_ms, Archive(runtime, board, ended).step)]
    host.measures.append(Measures(runtime, board, Letters(console, reader, host.outlet), reader).measure)
    host.more_groups.append(GROUP)
    host.app = serve(host, console, ended, runtime, settings)
    return host
