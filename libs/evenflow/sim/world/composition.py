"""How a scenario's settings reach the services of the registry.

`heartbeat_s` reaches every service that has `heartbeat_ms` or `heartbeat_period_ms`. A setting that reaches
nobody is an error: nothing is accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evenflow.hosting.registry import SERVICES, ServiceKind
from evenflow.platform.runtime import Runtime
from evenflow.sim.scenario.outcome import ScenarioWrong
from evenflow.sim.scenario.policy import SAME_NUMBER
from evenflow.sim.scenario.schema import Values
from evenflow.sim.world.hosting import Runs

#: Settings whose name in a service differs from the scenario's beyond the unit.
_ALSO: Final[dict[str, tuple[str, ...]]] = {
    "heartbeat_s": ("heartbeat_period_ms", "heartbeat_ms"),
    "beacon_s": ("beacon_period_ms",),
    "round_limit_s": ("round_limit_ms", "round_limit_s"),
    "poll_wait_s": ("poll_wait_ms", "poll_wait_ms_max"),
}
#: Settings of the simulated surroundings, of no service.
_SURROUNDINGS: Final = ("session_timeout_s", "retention_s", "object_store_s", "through_console")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one service is built."""

    name: str
    build: Callable[[Runtime, Any], Runs]
    settings: Any


def fields_for(setting: str) -> tuple[str, ...]:
    """The names that a scenario's setting may have in a service."""
    stem = setting.removesuffix("_s") if setting.endswith("_s") else setting
    return (f"{stem}_ms", f"{stem}_period_ms", stem, *_ALSO.get(setting, ()))


class Composition:
    """The recipes of one run, made with its settings; `fixed` are values by service that no scenario sets."""

    def __init__(
        self,
        settings: Values,
        policy: Values,
        services: Mapping[str, ServiceKind] = SERVICES,
        fixed: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._settings = dict(settings)
        for setting, (section, key) in SAME_NUMBER.items():
            if setting not in self._settings and key in policy.get(section, {}):
                self._settings[setting] = policy[section][key]
        self._given = dict(settings)
        self._used: dict[str, None] = {}
        self.recipes = {
            name: Recipe(name, kind.build, self.settings_for(kind.settings, **(fixed or {}).get(name, {})))
            for name, kind in services.items()
        }

    def settings_for(self, kind: Any, **fixed: Any) -> Any:
        """A service's settings with those of the scenario that it has. Raises ScenarioWrong outside their limits."""
        values: dict[str, Any] = dict(fixed)
        for setting, value in self._settings.items():
            for field in fields_for(setting):
                if field in kind.model_fields:
                    values[field] = value / 1000 if field.endswith("_s") else value
                    self._used[setting] = None
        try:
            return kind(**values)
        except ValueError as error:
            raise ScenarioWrong("settings", f"{kind.__name__} refuses them: {' '.join(str(error).split())}") from None

    def check_all_used(self) -> None:
        """Raise ScenarioWrong when a setting reached nobody: nothing is accepted and ignored."""
        for setting in self._given:
            if setting not in self._used and setting not in SAME_NUMBER and setting not in _SURROUNDINGS:
                raise ScenarioWrong(f"settings.{setting}", "no service has this setting")
