"""How the gateway says no."""

from __future__ import annotations

from evenflow.core.errors import Refused


class IdentityRefused(Refused):
    """Nobody proved to be this node: unsigned, wrongly signed, another key, a token that is not good."""

    code = "identity"


class SessionUnknown(Refused):
    """The session's tag is not right here: open another session."""

    code = "session-unknown"


class Revoked(Refused):
    """The node was taken out for good."""

    code = "node-revoked"


class TooLarge(Refused):
    """A body or header is larger than the gateway reads."""

    code = "too-large"


class NotFound(Refused):
    """There is no such thing."""

    code = "not-found"
