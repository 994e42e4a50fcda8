"""Hidden secrets are taken out of texts in every spelling, and nothing else is."""

from __future__ import annotations

import json
from time import process_time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.files import redaction
from seeact_offline.files.redaction import hide, redact, redact_reported, redact_values

SECRET = 'pä"ss/w\\ö rd+4711'


@pytest.fixture(autouse=True)
def secret(no_secrets: None) -> None:
    hide(SECRET)


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote(quote(SECRET, safe=""), safe=""),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(SECRET))[3:-3],
        repr(SECRET)[1:-1],
        SECRET.replace("4", "%34"),
    ],
)
def test_a_secret_is_found_however_it_is_spelled(spelled: str) -> None:
    assert redact(f"before {spelled} after") == "before *** after"


def test_text_without_a_secret_stays() -> None:
    assert redact("pass/word 4711 %2F") == "pass/word 4711 %2F"


def test_a_short_text_is_no_secret() -> None:
    hide("EMPTY")
    assert redact("EMPTY cart") == "EMPTY cart"


def test_the_longer_of_two_secrets_goes_whole() -> None:
    hide("tok-12345678")
    hide("tok-12345678-more")
    assert redact("x tok-12345678-more y") == "x *** y"


def test_values_are_redacted_and_names_are_not() -> None:
    assert redact_values({SECRET: [SECRET, 1.5, None, {"a": (SECRET, True)}]}) == {
        SECRET: ["***", 1.5, None, {"a": ["***", True]}]
    }


def test_a_secret_is_not_cut_in_two_before_it_is_found() -> None:
    limit = redaction.REPORTED_CHARS
    for start in range(limit - len(SECRET) - 1, limit + 1):
        assert "pä" not in redact_reported("." * start + SECRET)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("wrong key sk-abc***xyz9.", "wrong key ***"),
        ("Authorization: Bearer c3VyZSB0aGluZw", "Authorization***"),
        ("{'authorization': 'Basic c3VyZSB0aGluZw'}", "{'authorization***'}"),
        ("no route to http://user:pa/ss@proxy/x", "no route to http://***@proxy/x"),
        ("GET /v1?api_key=abc&n=1", "GET /v1?***&n=1"),
        ("GET /v1?n=1&access_token=abc", "GET /v1?n=1&***"),
        ("a basic mistake, ask user@example.org", "a basic mistake, ask user@example.org"),
    ],
)
def test_what_others_report_loses_what_looks_like_a_secret(said: str, kept: str) -> None:
    assert redact_reported(said) == kept


@pytest.mark.parametrize("piece", ["://", "bearer ", "?key", "?a", "sk-", "%25", "://x@", "authorization:", "\\"])
def test_a_long_report_takes_no_long_time(piece: str) -> None:
    begin = process_time()
    redact_reported(piece * (1_000_000 // len(piece)))
    assert process_time() - begin < 5


@given(st.text(max_size=40), st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=8, max_size=12))
def test_no_spelling_of_any_secret_is_left(around: str, secret: str) -> None:
    redaction._hidden.clear()
    hide(secret)
    for spelled in (secret, quote(secret, safe=""), quote_plus(secret).replace("+", "%20"), json.dumps(secret)[1:-1]):
        assert redact(f"{around}\t{spelled}\t").endswith("\t***\t")


@pytest.mark.parametrize("last", ["%", "\\"])
def test_nothing_of_a_last_character_that_is_escaped_by_itself_is_left(last: str) -> None:
    """Found by the test above: `%25` and two backslashes begin with the character that they stand for."""
    hide(f"0000000{last}")
    assert redact(quote(f"0000000{last}", safe="")) == redact(json.dumps(f"0000000{last}")[1:-1]) == "***"
