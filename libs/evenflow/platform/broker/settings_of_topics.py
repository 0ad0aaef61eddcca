"""Comparing a topic as it is with what the registry of streams wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenflow.core.errors import Conflict

if TYPE_CHECKING:
    from evenflow.platform.broker.ports import TopicSettings


def refuse_other_settings(settings: TopicSettings, partitions: int, configs: Mapping[str, str]) -> None:
    """Raises Conflict, naming the mend, when a topic has other partitions or settings than the registry wants.

    Settings the registry does not name may have any value.
    """
    if partitions != settings.partitions:
        message = (
            f"topic {settings.name} has {partitions} partitions and the registry says {settings.partitions}: the "
            "partitions of a keyed topic never change; put the number back, or make a new major of the topic"
        )
        raise Conflict(message, topic=settings.name, found=partitions, wanted=settings.partitions)
    for name, wanted in sorted(settings.configs.items()):
        found = configs.get(name)
        if found != wanted:
            message = (
                f"topic {settings.name} has {name}={found} and the registry says {wanted}: alter the topic's setting "
                "(naming all of its settings: Kafka resets those left out), or correct the registry"
            )
            raise Conflict(message, topic=settings.name, setting=name, found=found, wanted=wanted)
