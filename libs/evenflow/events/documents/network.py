"""Sites, the links between them, and the datasets that lie there."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.fleet.description import DatasetCopy, DatasetDescription, LinkDescription, SiteDescription
from evenflow.events.documents import fields as f
from evenflow.events.documents import quantities as q

PLACE_BYTES_MAX: Final = 256
COPIES_MAX: Final = 1_024

_place = f.text(PLACE_BYTES_MAX)

SITE_FIELDS: Final[dict[str, f.Reader]] = {
    "id": f.read_id,
    "region": f.read_id,
    "city": _place,
    "data_centre": _place,
    "latitude": q.degrees(90),
    "longitude": q.degrees(180),
    "owner": _place,
    "store": f.read_bool,
    "upload": q.rate(),
}
_SITE_KEPT_AS: Final = {"latitude": "latitude_micro", "longitude": "longitude_micro", "upload": "upload_bits"}


@f.map_of(SITE_FIELDS, "id")
def read_site(given: dict[str, Any]) -> SiteDescription:
    """Read a site, or say all that is wrong with it."""
    return SiteDescription(**{_SITE_KEPT_AS.get(name, name): entry for name, entry in given.items()})


def parse_site(document: object) -> SiteDescription:
    """Read a site. Raises FieldRefused for the first problem."""
    return f.parsed(read_site, document)


LINK_FIELDS: Final[dict[str, f.Reader]] = {
    "from": f.read_id,
    "to": f.read_id,
    "round_trip_ms": q.scaled(1_000),
    "bandwidth": q.rate(),
    "loss": q.scaled(1_000_000, high=1_000_000),
    "price_per_gb": q.read_money,
    "both_ways": f.read_bool,
}
_LINK_KEPT_AS: Final = {
    "from": "source",
    "to": "target",
    "round_trip_ms": "round_trip_us",
    "bandwidth": "bandwidth_bits",
    "loss": "loss_ppm",
    "price_per_gb": "price_per_gb_micro",
}


@f.map_of(LINK_FIELDS, "from", "to", "bandwidth")
def read_link(given: dict[str, Any]) -> LinkDescription:
    """Read a link, or say all that is wrong with it."""
    if given["from"] == given["to"]:
        raise f.FieldProblem(below=[("to", "is where the link begins; a link joins two sites")])
    return LinkDescription(**{_LINK_KEPT_AS.get(name, name): entry for name, entry in given.items()})


def parse_link(document: object) -> LinkDescription:
    """Read a link. Raises FieldRefused for the first problem."""
    return f.parsed(read_link, document)


_COPY_FIELDS: Final[dict[str, f.Reader]] = {"site": f.read_id, "authoritative": f.read_bool}


@f.map_of(_COPY_FIELDS, "site")
def _read_copy(given: dict[str, Any]) -> DatasetCopy:
    return DatasetCopy(**given)


DATASET_FIELDS: Final[dict[str, f.Reader]] = {
    "id": f.read_id,
    "size": q.size(),
    "residency": f.list_of(f.read_id),
    "copies": f.list_of(_read_copy, COPIES_MAX),
}


@f.map_of(DATASET_FIELDS, "id", "size")
def read_dataset(given: dict[str, Any]) -> DatasetDescription:
    """Read a dataset, or say all that is wrong with it."""
    copies: tuple[DatasetCopy, ...] = given.get("copies", ())
    sites = [copy.site for copy in copies]
    for index, site in enumerate(sites):
        if site in sites[:index]:
            raise f.FieldProblem(below=[(f"copies[{index}].site", "has a copy already")])
    return DatasetDescription(given["id"], given["size"], given.get("residency", ()), copies)


def parse_dataset(document: object) -> DatasetDescription:
    """Read a dataset. Raises FieldRefused for the first problem."""
    return f.parsed(read_dataset, document)
