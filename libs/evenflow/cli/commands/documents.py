"""`evenflow documents`: policies, queues, sites, links, datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from evenflow.cli import words
from evenflow.cli.commands.submit import read_file
from evenflow.cli.connection import connected, fetch, raw
from evenflow.cli.options import URL, Form, FormOption, JsonOption, ReasonOption, UrlOption, wants_json
from evenflow.cli.output import say, show_json, table

app = typer.Typer(no_args_is_help=True, help="Versioned documents: policy, queue, site, link; and datasets.")

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help="policy, queue, site or link (put: also dataset).")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name; a link's is from..to.")]


@app.command("list")
def listed(
    kind: Annotated[str, typer.Option(help="Documents of this kind.")] = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """List the documents in force."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("documents", kind=kind))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("KIND", "NAME", ">VERSION", "WHEN", "WHO", "REASON"),
        (
            (row["kind"], row["name"], row["version"], words.clock(row["at_ms"]), row["who"], row["reason"])
            for row in answer["items"]
        ),
        empty="no document was published; put one with: evenflow documents put queue NAME FILE",
    )


@app.command()
def show(kind: KindArgument, name: NameArgument, url: UrlOption = URL) -> None:
    """Print a document's newest version as JSON."""
    from evenflow.client import calls

    show_json(fetch(url, calls.document(kind, name)))


@app.command()
def put(
    kind: KindArgument,
    name: NameArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - reads standard input.")],
    reason: ReasonOption = "",
    expect: Annotated[int | None, typer.Option(min=0, help="The version that must be the newest now.")] = None,
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Publish a new version of a document, or register a dataset."""
    from evenflow.client import calls

    document = read_file(file)
    with connected(url) as client:
        if kind == "dataset":
            answer = raw(client, calls.put_dataset(name, document, reason))
        else:
            answer = raw(client, calls.put_document(kind, name, document, reason, expect))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    for row in answer.get("published", ()):
        say(f"{row['kind']} {row['name']} version {row['version']} published")
    if kind == "dataset":
        say(f"dataset {name} handed to inventory")
