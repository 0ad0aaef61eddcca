"""Settings of every service of the registry: one way to set them, limits on every number, secrets never shown."""

from __future__ import annotations

import pytest

from evenflow.agent.settings import AgentSettings
from evenflow.core.errors import FieldRefused
from evenflow.gateway.settings import GatewaySettings
from evenflow.hosting.registry import SERVICES
from evenflow.platform.settings import FOR_OTHERS, load_settings, shown, variable


@pytest.mark.parametrize("name", SERVICES)
def test_every_number_of_a_service_can_be_set_in_the_environment(name: str) -> None:
    """The default of each field, written as text in its variable, is read back as the same value."""
    kind = SERVICES[name].settings
    defaults = kind()
    environment = {
        variable(name, field): str(value) for field, value in defaults if isinstance(value, int | float | str)
    }
    assert load_settings(kind, name, environment=environment) == defaults


@pytest.mark.parametrize("name", SERVICES)
def test_a_misspelt_setting_is_refused_by_its_variable(name: str) -> None:
    """A setting that reaches nobody is an error; what is meant for tasks or agents is no setting."""
    kind = SERVICES[name].settings
    load_settings(kind, name, environment=dict.fromkeys(FOR_OTHERS, "/x"))
    wrong = variable(name, "no_such_field")
    with pytest.raises(FieldRefused, match=rf"^{wrong}: is no setting of {name}"):
        load_settings(kind, name, environment={wrong: "1"})


def test_the_gateway_never_shows_its_secrets() -> None:
    """Neither its text, nor what is logged of it, nor the error for a wrong one holds token or secret."""
    settings = GatewaySettings(token="join-me", secret="ab" * 32)
    for text in (repr(settings), str(settings), str(shown(settings))):
        assert "join-me" not in text
        assert "abab" not in text
    with pytest.raises(FieldRefused, match="hexadecimal") as caught:
        load_settings(GatewaySettings, "gateway", environment={"EVENFLOW_GATEWAY_SECRET": "not-a-secret"})
    assert "not-a-secret" not in str(caught.value)


def test_a_list_is_written_as_json() -> None:
    """The console's host names come as a JSON list."""
    kind = SERVICES["console"].settings
    found = load_settings(kind, "console", environment={"EVENFLOW_CONSOLE_TRUSTED_HOSTS": '["a.example"]'})
    assert found.model_dump()["trusted_hosts"] == ("a.example",)


def test_the_agents_settings_are_bounded_like_a_services() -> None:
    """The agent is in no registry, but its settings have the same base."""
    with pytest.raises(FieldRefused, match="poll_wait_ms"):
        AgentSettings().with_changes(poll_wait_ms=-1)
