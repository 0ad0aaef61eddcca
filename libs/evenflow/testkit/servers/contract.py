"""One contract, every backend: the same tests collected for each, and none of them left out.

    python -m evenflow.testkit.servers.contract            run the suites on every backend, then compare
    python -m evenflow.testkit.servers.contract --collect  compare what would run, without any server

Prints a row a backend: tests collected, passed, failed, skipped, expected to fail. Ends with 1 when the backends of a
port do not run the same tests, or when one was skipped, expected to fail, or failed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import pytest

#: The plugin's option, and its mark for a port's backend: (port, name).
EVERY: Final = "--every-backend"
BACKEND: Final = "backend"
SUITES: Final = ("tests/contract/log", "tests/contract/stores")
OUTCOMES: Final = ("passed", "failed", "skipped", "xfailed")
SHOWN_MAX: Final = 5

#: The port's fixture, the backend's name, and the test without it.
Place = tuple[str, str, str]


class Census:
    """A pytest plugin that notes which test ran on which backend, and how it ended."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.outcomes: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep what runs on a backend of some port."""
        chosen = []
        for item in items:
            callspec = getattr(item, "callspec", None)
            mark = item.get_closest_marker(BACKEND)
            if callspec is not None and mark is not None:
                others = {name: value for name, value in callspec.params.items() if name != "backend_url"}
                test = f"{item.nodeid.partition('[')[0]}{sorted(others.items())!r}"
                self.places[item.nodeid] = (mark.args[0], mark.args[1], test)
                chosen.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self.places])
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of a test's three phases counts."""
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif hasattr(report, "wasxfail"):
            self.outcomes.setdefault(report.nodeid, "xfailed")
        elif report.skipped:
            self.outcomes.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, "passed")

    def rows(self) -> list[tuple[str, str, Counter[str]]]:
        """Port, backend and its counts, in the order in which they were met."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for nodeid, (port, backend, _) in self.places.items():
            row = counts.setdefault((port, backend), Counter())
            row["collected"] += 1
            if nodeid in self.outcomes:
                row[self.outcomes[nodeid]] += 1
        return [(port, backend, row) for (port, backend), row in counts.items()]

    def problems(self, *, ran: bool) -> list[str]:
        """Whatever is not the same everywhere, or was left out."""
        return [*different(self.places.values()), *(self._left_out() if ran else [])]

    def _left_out(self) -> Iterable[str]:
        for nodeid in self.places:
            outcome = self.outcomes.get(nodeid, "not run")
            if outcome != "passed":
                yield f"{nodeid}: {outcome}"


def different(places: Iterable[Place]) -> list[str]:
    """Tests that some backends of a port have and others have not."""
    having: dict[str, dict[str, dict[str, None]]] = {}
    for port, backend, test in places:
        having.setdefault(port, {}).setdefault(backend, {})[test] = None
    problems = []
    for port, backends in having.items():
        everything = {test: None for tests in backends.values() for test in tests}
        if len(backends) < 2:
            problems.append(f"{port}: only {', '.join(backends)} runs its tests, so nothing is compared")
        for backend, tests in backends.items():
            problems += [f"{port}: {backend} does not run {test}" for test in everything if test not in tests]
    return problems


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)  # noqa: T201  the command's own output


def main(arguments: list[str]) -> int:
    """Run or collect, print the table, and judge."""
    parser = argparse.ArgumentParser(
        prog="evenflow.testkit.servers.contract",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--collect", action="store_true")
    collect = parser.parse_args(arguments).collect
    census = Census()
    options: list[Any] = ["-q", EVERY, *SUITES, *(["--collect-only", "--no-summary", "-qq"] if collect else [])]
    code = pytest.main(options, plugins=[census])
    say(f"\n{'fixture':<12}{'backend':<18}{'collected':>10}" + "".join(f"{name:>9}" for name in OUTCOMES))
    for port, backend, row in census.rows():
        say(f"{port:<12}{backend:<18}{row['collected']:>10}" + "".join(f"{row[name]:>9}" for name in OUTCOMES))
    problems = census.problems(ran=not collect)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        problems.append(f"pytest ended with {int(code)}")
    for problem in problems[:SHOWN_MAX]:
        say(f"PROBLEM {problem}")
    say("contract: the same on every backend" if not problems else f"contract: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
