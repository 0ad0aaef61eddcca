"""The servers of docker-compose.yml through testcontainers, where a container engine answers.

They are the real ones, MongoDB as a replica set of one among them. What was up before is used and left up.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from evenflow.core.errors import Unavailable
from evenflow.testkit.servers.addresses import Addresses
from evenflow.testkit.servers.artifacts import Say

#: As docker-compose.yml publishes them.
URLS: Final = {
    "kafka": "kafka://127.0.0.1:9092",
    "redis": "redis://127.0.0.1:6379/0",
    "documents": "mongodb://127.0.0.1:27017/evenflow?replicaSet=evenflow",
    "objects": "s3://evenflow/tests?endpoint=http://127.0.0.1:7480&region=us-east-1",
}
#: Of that file; the rest of it are the services and what watches them.
SERVICES: Final = ("kafka", "redis", "mongodb", "objects")
ANSWER_S: Final = 5
KEYS: Final = {"AWS_ACCESS_KEY_ID": "evenflow", "AWS_SECRET_ACCESS_KEY": "evenflow-on-loopback"}


def engine_answers() -> bool:
    """Whether a container engine can be spoken to, where DOCKER_HOST or the usual socket says."""
    named = urlsplit(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    # Asked before the client is: where nobody listens, that one leaves its socket open.
    with socket.socket(socket.AF_UNIX if named.scheme == "unix" else socket.AF_INET) as probe:
        probe.settimeout(ANSWER_S)
        try:
            probe.connect(named.path if named.scheme == "unix" else (named.hostname or "", named.port or 2375))
        except OSError:
            return False
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=ANSWER_S)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except DockerException:
        return False


class EngineServers:
    """The compose file's servers for the length of a test run."""

    def __init__(self, root: Path, say: Say) -> None:
        """Take the folder of the compose file."""
        from testcontainers.compose import DockerCompose

        self._say = say
        self._compose: Any = DockerCompose(root, wait=True, keep_volumes=True, services=list(SERVICES))
        self._ours = False

    def start(self) -> Addresses:
        """Start them and wait for their health checks. Raises Unavailable when that fails."""
        self._ours = not self._compose.get_containers()
        self._say("waiting for the containers of docker-compose.yml to be healthy")
        try:
            self._compose.start()
        except Exception as error:
            self.stop()
            raise Unavailable(f"the engine answers, but the compose file did not start: {error}") from error
        return Addresses(URLS, KEYS, dict.fromkeys(URLS, "docker-compose.yml"))

    def stop(self) -> None:
        """Stop what was started here."""
        if self._ours:
            self._compose.stop(down=False)
