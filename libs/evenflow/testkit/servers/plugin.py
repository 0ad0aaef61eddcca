"""Pytest's door to real servers: the option, the fixture, and what a suite runs on.

`--servers` runs on the real servers alone and leaves everything else out, `--every-backend` on everything. Without both
suites run on the backends that need no server, and on a real one too where the environment names it. Which servers: see
`choosing`; if one is to be had nowhere, its tests fail.

    def pytest_generate_tests(metafunc):
        backends(metafunc, "documents", {"memory": "memory:"}, {"mongodb": "documents"})

    @pytest.fixture
    def documents(backend_url): ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from evenflow.testkit.servers.addresses import Addresses, addresses_from
from evenflow.testkit.servers.choosing import choose
from evenflow.testkit.servers.contract import BACKEND, EVERY

OPTION: Final = "--servers"
ON_A_SERVER: Final = pytest.mark.servers


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    parser.addoption(OPTION, action="store_true", help="run on real servers, and only what runs on them")
    parser.addoption(EVERY, action="store_true", help="run on real servers too, beside what needs none")


def pytest_configure(config: pytest.Config) -> None:
    """The marks of what runs on a real server, and of a port's backend."""
    config.addinivalue_line("markers", "servers: runs on a real server, which `servers` finds or starts")
    config.addinivalue_line("markers", f"{BACKEND}(port, name): runs on that backend of that port")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what says nothing about a real server."""
    if config.getoption(OPTION):
        out = [item for item in items if item.get_closest_marker("servers") is None]
        items[:] = [item for item in items if item.get_closest_marker("servers") is not None]
        config.hook.pytest_deselected(items=out)


def backends(metafunc: pytest.Metafunc, fixture: str, inside: Mapping[str, str], real: Mapping[str, str]) -> None:
    """Run what asks for `fixture` on each URL of `inside` and on each kind of `real` server, all by test id.

    The fixture finds its URL in `backend_url`.
    """
    if fixture not in metafunc.fixturenames:
        return
    config = metafunc.config
    marks = {id_: getattr(pytest.mark, BACKEND)(fixture, id_) for id_ in (*inside, *real)}
    params: list[Any] = []
    if not config.getoption(OPTION):
        params += [pytest.param(url, id=id_, marks=marks[id_]) for id_, url in inside.items()]
    named = addresses_from(os.environ).urls
    for id_, kind in real.items():
        if config.getoption(OPTION) or config.getoption(EVERY) or kind in named:
            params.append(pytest.param(kind, id=id_, marks=[ON_A_SERVER, marks[id_]]))
    metafunc.parametrize("backend_url", params, indirect=True)


@pytest.fixture
def backend_url(request: pytest.FixtureRequest) -> str:
    """The URL of the backend that this test runs on; a server's is looked for when it is first needed."""
    chosen = str(request.param)
    return chosen if ":" in chosen else str(request.getfixturevalue("servers").urls[chosen])


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Iterator[Addresses]:
    """The real servers' addresses; local ones run for the session, with their keys in the environment."""
    capturing: Any = request.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capturing.global_and_fixture_disabled():
            print(text, flush=True)  # noqa: T201  which server is waited for, while it is

    say("")
    chosen = choose(Path(request.config.rootpath), os.environ, say)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in chosen.addresses.keys.items():
            patch.setenv(name, value)
        yield chosen.addresses
    chosen.close(keep=bool(request.session.testsfailed))
