"""Stores from URLs: what is opened, what is refused and how, what survives a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.core.errors import FieldRefused, Refused, Unavailable
from evenflow.platform.stores.documents_sqlite import SqliteDocuments
from evenflow.platform.stores.factory import open_documents, open_live, open_objects, open_stores
from evenflow.platform.stores.ports import Stored


async def test_the_embedded_profile_opens_closes_and_finds_its_documents_again(tmp_path: Path) -> None:
    """Documents in a file outlive the process; live load does not and need not."""
    urls = {"documents": f"sqlite://{tmp_path}/deep/d.db", "live": "fake:", "objects": f"file://{tmp_path}/objects"}
    stores = open_stores(**urls)
    await stores.documents.put("tasks", "t", {"n": 1})
    await stores.live.put_frame("east", b"", written_ms=1)
    await stores.close()
    again = open_stores(**urls)
    assert await again.documents.get("tasks", "t") == Stored("t", 1, {"n": 1})
    assert await again.live.sites() == []
    await again.close()


@pytest.mark.parametrize(
    "url", ["", "plain", "mysql://u:secret@h/x", "sqlite:", "sqlite://host/file", "sqlite:///", "fake:"]
)
def test_a_wrong_documents_url_names_the_field_and_never_the_password(url: str) -> None:
    """A message may reach a log, so it holds the scheme alone."""
    with pytest.raises(FieldRefused, match=r"^documents: ") as caught:
        open_documents(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("nodes", ["", "host", "u:secret@host:0", "host:1,", "host:70000/0", "[::1]"])
def test_a_cluster_whose_nodes_are_no_addresses_is_refused(nodes: str) -> None:
    """Each node needs its port; the message shows the form and never the password."""
    with pytest.raises(FieldRefused, match=r"^live: each node of a cluster must be host:port") as caught:
        open_live(f"redis+cluster://{nodes}")
    assert "secret" not in str(caught.value)


def test_wrong_urls_of_the_other_stores_name_their_field() -> None:
    """The same for live load and objects."""
    with pytest.raises(FieldRefused, match=r"^live: "):
        open_live("memcached://h")
    with pytest.raises(FieldRefused, match=r"^objects: "):
        open_objects("s3:///no-bucket")
    with pytest.raises(FieldRefused, match=r"^objects: "):
        open_objects("http://h/x")


def test_a_file_that_is_no_database_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """Documents are a view, so the way out of a damaged file is to move it away."""
    path = tmp_path / "d.db"
    path.write_bytes(b"this is not a database, but long enough to be read as one" * 40)
    with pytest.raises(Refused, match="move it away"):
        SqliteDocuments(path)


async def test_a_closed_or_unopenable_file_is_unavailable(tmp_path: Path) -> None:
    """Failures of the database are the store's, never the document's."""
    with pytest.raises(Unavailable):
        SqliteDocuments(tmp_path)
    store = SqliteDocuments(tmp_path / "d.db")
    await store.close()
    with pytest.raises(Unavailable):
        await store.get("tasks", "t")


async def test_a_batch_in_sqlite_is_all_or_nothing(tmp_path: Path) -> None:
    """A failure half way through a batch leaves no part of it."""
    store = SqliteDocuments(tmp_path / "d.db")
    store._db.execute(
        "create trigger bad before insert on documents when new.id = 'b' begin select raise(abort, 'no'); end"
    )
    with pytest.raises(Unavailable):
        await store.put_many("tasks", {"a": {}, "b": {}})
    assert await store.get("tasks", "a") is None
    await store.close()
