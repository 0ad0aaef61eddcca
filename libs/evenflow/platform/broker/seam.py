"""The one place that touches FastStream's private parts: its connection step, order of start, and parser.

Pinned to one version of FastStream; `tests/contract/log/test_seam.py` fails loudly when its insides change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from faststream import AckPolicy
from faststream.__about__ import __version__ as installed
from faststream._internal.parser import DefaultCodec
from faststream.kafka import KafkaBroker

from evenflow.core.errors import Refused

if TYPE_CHECKING:
    from faststream.middlewares import BaseMiddleware

PINNED = "0.7.8"


def require_pinned_version() -> None:
    """Raises Refused when another FastStream is installed than the seam was written for."""
    if installed != PINNED:
        message = (
            f"FastStream {installed} is installed and the embedded log's seam was written for {PINNED}: "
            f"install faststream=={PINNED}, or revise platform/broker/seam.py with its contract test"
        )
        raise Refused(message)


class OrderedKafkaBroker(KafkaBroker):
    """A KafkaBroker whose subscribers start, join and stop in the order in which they were registered.

    Subscribers read committed records from the earliest offset unless they say otherwise, and a failing handler sees
    its record again.
    """

    @property
    def subscribers(self) -> list[Any]:
        """In the order of registration; the base class orders them by address in memory."""
        own = self._Registrator__persistent_subscribers  # type: ignore[attr-defined]  # private list of the base
        return [*own, *(subscriber for router in self.routers for subscriber in router.subscribers)]

    @property
    def publishers(self) -> list[Any]:
        """In the order of registration."""
        own = self._Registrator__persistent_publishers  # type: ignore[attr-defined]  # private list of the base
        return [*own, *(publisher for router in self.routers for publisher in router.publishers)]

    def subscriber(self, *topics: Any, **settings: Any) -> Any:
        """FastStream's `subscriber`, with the defaults of the class."""
        settings.setdefault("isolation_level", "read_committed")
        settings.setdefault("auto_offset_reset", "earliest")
        return super().subscriber(*topics, **settings)


def broker_settings(
    *,
    client_id: str,
    middlewares: Sequence[type[BaseMiddleware]],
    new_id: Callable[[], str],
    graceful_timeout_s: float,
) -> dict[str, Any]:
    """What every broker of the product is made with, on both profiles."""
    return {
        "client_id": client_id,
        "middlewares": list(middlewares),
        "id_generator": new_id,
        "graceful_timeout": graceful_timeout_s,
        "ack_policy": AckPolicy.NACK_ON_ERROR,
        "allow_auto_create_topics": False,
        "logger": None,
        "apply_types": False,
    }


class EmbeddedKafkaBroker(OrderedKafkaBroker):
    """A KafkaBroker whose connection step is replaced by the embedded log: same decorators, middlewares, policies."""

    def __init__(
        self,
        make_consumer: Callable[..., Any],
        make_producer: Callable[[], Any],
        **settings: Any,
    ) -> None:
        require_pinned_version()
        super().__init__("embedded", **broker_settings(**settings))
        self._make_consumer = make_consumer
        self._make_producer = make_producer

    async def _connect(self) -> Callable[..., Any]:
        config = self.config.broker_config
        await config.producer.connect(
            self._make_producer(), serializer=config.fd_config._serializer, codec=config.broker_codec or DefaultCodec()
        )
        config.admin.admin_client = EmbeddedAdmin()
        config.builder = self._make_consumer
        return self._make_consumer


class EmbeddedAdmin:
    """What FastStream asks of an administration client."""

    async def describe_cluster(self) -> dict[str, Any]:
        """For `ping`: the log is there as long as the process is."""
        return {"brokers": [{"node_id": 0}]}

    async def close(self) -> None:
        """Nothing to close."""
