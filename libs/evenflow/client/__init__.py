"""Evenflow from Python: `api` for calls, `subscribing` for the log's own events, `results` for what comes back."""

from evenflow.client.api import AsyncClient, Client
from evenflow.client.errors import Answered, Unreachable

__all__ = ["Answered", "AsyncClient", "Client", "Unreachable"]
