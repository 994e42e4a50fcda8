"""Settings of a browser for websites: what it shows itself as, a stored login, and the proxy of the environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_text
from seeact_offline.files.redaction import hide
from seeact_offline.records import InputError

SHORTEST_SECRET = 16
"""Characters of the shortest stored value that counts as a secret; ids of sessions are longer, and shorter values are words."""


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """Settings of a browser. The defaults are those of a recording."""

    headed: bool = False
    """True shows its window."""
    user_agent: str | None = None
    """None: the browser's own."""
    locale: str = "en-US"
    geolocation: tuple[float, float] | None = None
    """Latitude and longitude in degrees, which pages may ask for; None: they may not."""
    storage_state: Path | None = None
    """A file of Playwright's storage state, such as a login, with which every episode begins."""
    trace: bool = False
    """True keeps Playwright's trace of each episode."""

    @property
    def identity(self) -> dict[str, object]:
        """The settings by which pages may differ, without the defaults; of a storage state no more than that there is one."""
        names = [one.name for one in fields(self) if one.name != "trace" and getattr(self, one.name) != one.default]
        return {name: True if name == "storage_state" else getattr(self, name) for name in names}

    def of_context(self) -> dict[str, Any]:
        """Arguments for a browser context. Raises InputError for a storage state that cannot be used; no secret is in its text."""
        own: dict[str, Any] = {"locale": self.locale}
        if self.user_agent is not None:
            own["user_agent"] = self.user_agent
        if self.geolocation is not None:
            latitude, longitude = self.geolocation
            own |= {
                "geolocation": {"latitude": latitude, "longitude": longitude},
                "permissions": ["geolocation"],
            }
        if self.storage_state is not None:
            own["storage_state"] = read_storage_state(self.storage_state)
        return own

    def check(self) -> None:
        """Raises InputError for what cannot be used on this machine, and for a trace of a login."""
        if self.trace and self.storage_state:
            why = "`trace` keeps the cookies that are sent; it cannot be combined with `storage_state`"
            raise InputError("trace", sentence=why)
        self.of_context()
        if self.headed and sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
            raise InputError("headed", sentence="`headed` needs a display: set DISPLAY, or run under xvfb-run")


class _Cookie(msgspec.Struct, frozen=True):
    name: str
    value: str
    domain: str
    path: str


class _Entry(msgspec.Struct, frozen=True):
    name: str
    value: str


class _Storage(msgspec.Struct, frozen=True, rename="camel"):
    origin: str
    local_storage: tuple[_Entry, ...] = ()


class _StorageState(msgspec.Struct, frozen=True):
    cookies: tuple[_Cookie, ...] = ()
    origins: tuple[_Storage, ...] = ()


def read_storage_state(path: Path) -> dict[str, Any]:
    """The storage state of a file; hides its secrets from all that is written. Raises InputError without a word of its content."""
    text = read_text("storage_state", path, "a JSON file of Playwright's storage state")
    try:
        values = read_json(text)
        state = typed(values, _StorageState)
    except FormatError as error:
        expected = f"Playwright's storage state, {error.expected}"
        raise InputError("storage_state", expected, f"something else in {path}") from None
    stored = [cookie.value for cookie in state.cookies]
    for value in (*stored, *(entry.value for storage in state.origins for entry in storage.local_storage)):
        hide(value, SHORTEST_SECRET)
    return dict(values)


def read_geolocation(text: str) -> tuple[float, float]:
    """Latitude and longitude of `LAT,LON`. Raises ValueError.

    >>> read_geolocation("40.7,-74")
    (40.7, -74.0)
    """
    try:
        latitude, longitude = map(float, text.split(","))
    except ValueError:
        latitude = longitude = float("nan")
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise ValueError(f"expected LAT,LON in degrees, such as 40.7,-74.0, got {text}")
    return latitude, longitude


def environment_proxy() -> dict[str, str] | None:
    """The proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, without the hosts of NO_PROXY, as Playwright takes it; None for none."""
    named = getproxies_environment()
    url = named.get("https") or named.get("http") or named.get("all")
    if not url:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    hide(password)
    login = {"username": user, "password": password} if user else {}
    bypass = ",".join(filter(None, ("127.0.0.1", named.get("no", ""))))
    return {"server": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", "bypass": bypass, **login}
