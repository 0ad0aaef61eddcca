"""Writing the list of permissions to a Kafka cluster; what stands there already is left as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.errors import ClusterAuthorizationFailedError, KafkaError, for_code
from aiokafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest

from evenflow.core.errors import Refused, Unavailable
from evenflow.platform.security.permissions import NAMES, Operation, Permission, Resource

#: Kafka's numbers for what a permission is about, what it permits, and how its name is meant.
RESOURCES: Final = {Resource.TOPIC: 2, Resource.GROUP: 3, Resource.CLUSTER: 4, Resource.TRANSACTIONAL_ID: 5}
OPERATIONS: Final = {
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
}
LITERAL: Final = 3
PREFIXED: Final = 4
ANY: Final = 1
ALLOW: Final = 3
_RESOURCE_OF: Final = {number: kind for kind, number in RESOURCES.items()}
_OPERATION_OF: Final = {number: kind for kind, number in OPERATIONS.items()}


@dataclass(frozen=True, slots=True)
class Applied:
    """What was added, and what stands there for users of ours beyond the list (in words; nothing is taken away)."""

    added: Sequence[Permission]
    beyond: Sequence[str]


async def apply(admin: Any, wanted: Sequence[Permission]) -> Applied:
    """Add what is missing, through a started AIOKafkaAdminClient.

    Raises Refused when the user may not, or the cluster has no authorizer; Unavailable when it does not answer.
    """
    try:
        there, beyond = await _present(admin, set(wanted))
        missing = [permission for permission in wanted if permission not in there]
        for permission in missing:
            await _add(admin, permission)
    except KafkaError as error:
        raise Unavailable(f"the list of permissions was not written: {type(error).__name__}: {error}") from error
    return Applied(missing, beyond)


async def _present(admin: Any, wanted: set[Permission]) -> tuple[set[Permission], list[str]]:
    request = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    answer = await admin._send_request(request)  # noqa: SLF001  the client has no call of its own for it
    _check(answer.error_code, answer.error_message)
    there: set[Permission] = set()
    beyond: list[str] = []
    for kind, name, pattern, entries in answer.resources:
        for principal, host, operation, permission_type in entries:
            user = principal.removeprefix("User:")
            known = kind in _RESOURCE_OF and operation in _OPERATION_OF and permission_type == ALLOW and host == "*"
            if known:
                found = Permission(user, _RESOURCE_OF[kind], name, _OPERATION_OF[operation], pattern == PREFIXED)
                if found in wanted:
                    there.add(found)
                    continue
            if user.startswith(NAMES) or user == "*":
                means = "allows" if permission_type == ALLOW else "denies"
                what = _OPERATION_OF.get(operation, f"operation {operation}")
                beyond.append(f"{means} {user} from {host}: {what} {_RESOURCE_OF.get(kind, kind)} {name}")
    return there, sorted(beyond)


async def _add(admin: Any, permission: Permission) -> None:
    answer = await admin._send_request(  # noqa: SLF001  as above
        CreateAclsRequest(
            RESOURCES[permission.resource],
            permission.name,
            PREFIXED if permission.prefixed else LITERAL,
            f"User:{permission.user}",
            "*",
            OPERATIONS[permission.operation],
            ALLOW,
        )
    )
    for code, reason in answer.creation_responses:
        _check(code, reason)


def _check(code: int, reason: str | None) -> None:
    if not code:
        return
    kind = for_code(code)
    if kind is ClusterAuthorizationFailedError:
        raise Refused(
            "this user may not change permissions: log in as a super user, or as one with ALTER on the cluster"
        )
    if kind.__name__ == "SecurityDisabledError":
        raise Refused("this cluster checks nobody: set its authorizer.class.name, then apply the list")
    raise kind(reason or kind.__name__)
