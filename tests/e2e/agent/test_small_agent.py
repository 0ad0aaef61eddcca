"""What a node has to load: the agent runs on every machine, so it stays small."""

from __future__ import annotations

import subprocess
import sys


def test_a_node_loads_no_broker_database_or_web_framework():
    """Proves that the agent's process imports neither the log's client nor the services' frameworks."""
    heavy = ("aiokafka", "faststream", "starlette", "fastapi", "numpy", "redis", "fakeredis", "motor", "obstore")
    program = f"import sys, evenflow.agent.main; print([name for name in {heavy!r} if name in sys.modules])"
    paths = ":".join(path for path in sys.path if path)
    told = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
