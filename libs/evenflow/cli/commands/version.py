"""`evenflow version`."""

from __future__ import annotations

import platform

from evenflow.cli.options import Form, FormOption, JsonOption, wants_json
from evenflow.cli.output import say, show_json


def version(output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """Print the version."""
    from evenflow.platform.versions import installed

    if wants_json(output, json_flag):
        show_json({"evenflow": installed(), "python": platform.python_version()})
    else:
        say(f"evenflow {installed()} on Python {platform.python_version()}")
