"""Who gets the credentials for workers' REST servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from connectctl.cli.session import Session
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.clients.rest.credentials import RestCredentials
from connectctl.ops.config.settings import Setting, Settings
from connectctl.ops.core.errors import NotAuthorized
from fakes.restserver import RestServer, rest_server

AUTH: dict[str, Any] = {"username": "ops", "password": "x"}
PINNED = AUTH | {"hosts": ["w*.Company.example", "10.0.0.1"]}
UNVERIFIED = {"verified": False}
HTTP, NOT_PINNED, NOT_VERIFIED = (
    "without encryption",
    "is not in rest_auth.hosts",
    "is not verified",
)


@pytest.mark.parametrize(
    ("url", "auth", "more", "withheld"),
    [
        ("https://w1.company.example:8083", AUTH, {}, None),
        ("http://w1.company.example:8083", AUTH, {}, HTTP),
        ("HTTP://w1.company.example", AUTH, {}, HTTP),
        ("http://w1.company.example:8083", AUTH | {"http": True}, {}, None),
        (
            "http://w1.company.example:8083",
            AUTH,
            {"named": ["http://W1.company.example:8083/"]},
            None,
        ),
        (
            "http://w1.company.example:8084",
            AUTH,
            {"named": ["http://w1.company.example:8083"]},
            HTTP,
        ),
        (
            "http://w1.company.example:8083",
            AUTH,
            {"named": ["https://w1.company.example:8083"]},
            HTTP,
        ),
        ("http://127.0.0.1:8083", AUTH, {}, HTTP),
        ("http://localhost:8083", AUTH, {}, HTTP),
        ("http://[::1]:8083", AUTH, {}, HTTP),
        ("http://127.0.0.1:8083", AUTH, {"named": ["http://127.0.0.1:8083"]}, None),
        ("https://127.0.0.1:8083", AUTH, {}, None),
        ("https://127.0.0.1:8083", AUTH, UNVERIFIED, NOT_VERIFIED),
        ("http://127.0.0.1.evil.example:8083", AUTH, {}, HTTP),
        ("http://localhost@evil.example:8083", AUTH, {}, HTTP),
        ("https://w1.company.example", PINNED, {}, None),
        ("https://w1.company.example", PINNED, UNVERIFIED, None),
        ("http://w1.company.example", PINNED, {}, HTTP),
        ("http://10.0.0.1", PINNED | {"http": True}, {}, None),
        ("https://w1.company.example.evil.example", PINNED, {}, NOT_PINNED),
        ("https://127.0.0.1:8083", PINNED, {}, NOT_PINNED),
        ("https://evil.example", AUTH, UNVERIFIED, NOT_VERIFIED),
        ("http://evil.example", {"token": "t"}, {}, HTTP),
        ("http://evil.example", {}, {}, None),
    ],
)
def test_who_gets_the_credentials(
    url: str, auth: dict[str, Any], more: dict[str, Any], withheld: str | None
) -> None:
    found = RestCredentials.of(auth, more.get("named", ()), verified=more.get("verified", True))
    why = found.withheld(url)
    assert (why is None) if withheld is None else (why is not None and withheld in why)
    assert bool(found.request(url)) is (withheld is None and bool(auth))


@pytest.fixture
def worker() -> Iterator[RestServer]:
    with rest_server({"GET /": (200, {"version": "4.3.1"})}) as server:
        yield server


def test_a_member_that_advertises_http_is_asked_without_credentials(worker: RestServer) -> None:
    calls = Connect([worker.url], auth=AUTH, tls={}, timeout=5)
    assert calls.get("/") == {"version": "4.3.1"}
    assert "Authorization" not in worker.asked[-1].headers
    worker.on("GET /", (401, {"error_code": 401, "message": "no"}))
    with pytest.raises(NotAuthorized, match="rest_auth was not sent") as told:
        calls.get("/")
    assert "rest_auth.http: true" in str(told.value.next_step)


def test_an_address_that_the_context_names_gets_the_credentials(worker: RestServer) -> None:
    named = worker.url.replace("127.0.0.1", "0.0.0.0")
    session = Session()
    given = {"rest": [named], "rest_auth.username": "ops", "rest_auth.password": "x", "timeout": 5}
    session.__dict__["settings"] = Settings(
        {name: Setting(value, "test") for name, value in given.items()}
    )
    session.connect_to(None).get("/")
    assert dict(worker.asked[-1].headers)["Authorization"].startswith("Basic ")
    del given["rest"]
    session.__dict__["settings"] = Settings(
        {name: Setting(value, "test") for name, value in given.items()}
    )
    session.connect((named,)).get("/")
    assert "Authorization" not in worker.asked[-1].headers
