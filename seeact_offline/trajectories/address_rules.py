"""`url_match`: the address of the last page (VisualWebArena 89f5af2:302-338, WebArena f62e0b9:71-241)."""

from __future__ import annotations

from collections import defaultdict
from urllib.parse import parse_qs, urlparse

from seeact_offline.trajectories.text_rules import OR, checked_text
from seeact_offline.trajectories.unscored import Unscored

EXACT = "EXACT"
PART = "GOLD in PRED"


def url_match(address: str, reference: str, note: str | None = None) -> float:
    """Passes an address that equals any reference (`EXACT`, the default), or holds one (`GOLD in PRED`); ` |OR| ` separates references.

    `localhost` counts as 127.0.0.1, one slash at the end as none; the order of the query counts. Raises Unscored for another note, and for no text.

    >>> url_match("http://localhost:7770/cart/", "http://127.0.0.1:7770/cart")
    1.0
    >>> url_match("http://shop/cart?page=2", "http://shop/cart"), url_match("http://shop/cart?page=2", "/cart", "GOLD in PRED")
    (0.0, 1.0)
    """
    page, wanted = _cleaned(address), [_cleaned(one) for one in checked_text(reference).split(OR)]
    note = EXACT if note is None else note
    if note == EXACT:
        return float(page in wanted)
    if note == PART:
        return float(any(one in page for one in wanted))
    raise Unscored("bad_task", f"expected url_note {EXACT} or {PART}, got {note!r:.60}")


def url_match_by_parts(address: str, reference: str, note: str | None = None) -> float:
    """Passes an address whose host and path hold those of any reference, and which has one of the references' values of each query key.

    WebArena's way; the values of all references count together. Slashes at the end of a whole address count as none, those before its query
    count. Raises Unscored for a note other than `GOLD in PRED`, the default.
    """
    if note not in (None, PART):
        raise Unscored("bad_task", f"expected url_note {PART}, got {note!r:.60}")
    page_place, page_query = _parts(checked_text(address).rstrip("/"))
    wanted = [_parts(one.rstrip("/")) for one in checked_text(reference).split(OR)]
    values: dict[str, set[str]] = defaultdict(set)
    for _, query in wanted:
        for key, found in query.items():
            values[key].update(found)
    in_place = any(place in page_place for place, _ in wanted)
    return float(in_place and all(found & set(page_query.get(key, ())) for key, found in values.items()))


def _cleaned(address: str) -> str:
    return checked_text(address).replace("localhost", "127.0.0.1").removesuffix("/")


def _parts(address: str) -> tuple[str, dict[str, list[str]]]:
    """Host and path as one text, and the values of each key of the query. Raises Unscored for what is no address."""
    try:
        parsed = urlparse(address)
        return parsed.netloc + parsed.path, parse_qs(parsed.query)
    except ValueError as error:
        raise Unscored("bad_task", f"expected an address, got {address!r:.60}: {error}") from None
