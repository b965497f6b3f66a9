from __future__ import annotations

import math
import ssl
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from connectctl.ops.clients.rest.connect import BRIEFLY, Connect, failure, sent_at_most
from connectctl.ops.connect.connector import path_of
from connectctl.ops.core.errors import (
    BadInput,
    ConnectctlError,
    NotAuthorized,
    TimedOut,
    Unreachable,
)
from fakes.certificates import Certificates, certificates
from fakes.restserver import RestServer, conflict, rest_server
from hypothesis import given
from hypothesis import strategies as st

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def worker() -> Iterator[RestServer]:
    with rest_server({"GET /": (200, {"version": "4.3.1"})}) as server:
        yield server


def connect(*urls: str, timeout: float = 20.0, **auth: str) -> Connect:
    return Connect(urls, auth=auth, tls={}, timeout=timeout, named=urls)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, ConnectctlError, "rejected"),
        (401, NotAuthorized, "not-authorized"),
        (403, NotAuthorized, "not-authorized"),
        (404, ConnectctlError, "not-found"),
        (405, ConnectctlError, "unsupported"),
        (409, TimedOut, "rebalancing"),
        (500, ConnectctlError, "worker-error"),
        (302, Unreachable, "not-connect"),
        (503, Unreachable, "unreachable"),
    ],
)
def test_every_answer_becomes_one_of_our_errors_with_connects_own_words(
    status: int, kind: type, code: str
) -> None:
    error = failure("PUT", "http://w/x", status, "Connect's own words")
    assert (type(error), error.code, error.why) == (kind, code, "Connect's own words")


@pytest.mark.parametrize(
    ("method", "status", "message", "expected"),
    [
        ("GET", 409, "", math.inf),
        ("PUT", 409, "", math.inf),
        ("PUT", 503, "Worker is still starting up", math.inf),
        ("GET", 502, "Bad Gateway", math.inf),
        ("PUT", 502, "Bad Gateway", 1),
        ("POST", 504, "Gateway Timeout", 1),
        ("GET", 500, "anything", 1),
        (
            "PUT",
            500,
            "Failed to write to config topic; this may be due to a transient error",
            math.inf,
        ),
        (
            "PUT",
            500,
            "Failed to read to end of config topic before performing zombie fencing",
            math.inf,
        ),
        ("GET", 500, "Request cannot be completed because a rebalance is expected", math.inf),
        (
            "PUT",
            500,
            "IO Error trying to forward REST request: Idle timeout expired: 30000/30000 ms",
            1,
        ),
        ("PATCH", 500, "Failed to modify offsets for source connector a", BRIEFLY),
        ("PUT", 400, "", 1),
    ],
)
def test_only_what_is_safe_to_send_again_is_sent_again(
    method: str, status: int, message: str, expected: float
) -> None:
    assert sent_at_most(method, status, message) == expected


def test_a_rebalance_is_waited_for(worker: RestServer) -> None:
    worker.on("PUT /connectors/a/stop", conflict, conflict, (204, None))
    assert connect(worker.url).send("PUT", "/connectors/a/stop") is None
    assert worker.requests() == ["PUT /connectors/a/stop"] * 3


def test_a_rebalance_that_does_not_end_is_a_time_out_in_time(
    worker: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.on("PUT /connectors/a/stop", conflict)
    waits: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(waits), sleep=waits.append)
    monkeypatch.setattr("connectctl.ops.clients.rest.connect.time", clock)
    with pytest.raises(TimedOut, match="rebalance") as caught:
        connect(worker.url, timeout=60).send("PUT", "/connectors/a/stop")
    assert caught.value.code == "rebalancing"
    assert 50 < sum(waits) < 60


def test_a_worker_that_is_not_there_is_passed_over(worker: RestServer) -> None:
    assert connect(NOBODY, worker.url).get("/") == {"version": "4.3.1"}
    assert connect(NOBODY, worker.url + "/").get("/") == {"version": "4.3.1"}


def test_a_worker_that_hangs_is_passed_over_when_reading(worker: RestServer) -> None:
    with rest_server({"GET /": (0, 60)}) as hanging:
        assert connect(hanging.url, worker.url, timeout=3).get("/") == {"version": "4.3.1"}


def test_a_worker_that_is_starting_is_passed_over(worker: RestServer) -> None:
    with rest_server({"GET /": (503, {"error_code": 503, "message": "starting"})}) as starting:
        assert connect(starting.url, worker.url).get("/") == {"version": "4.3.1"}


def test_a_worker_without_its_resources_yet_does_not_say_that_a_connector_is_not_there(
    worker: RestServer,
) -> None:
    found = (200, {"name": "a"})
    worker.on("GET /connectors/a", (404, "<html>Not Found"), (404, "<html>Not Found"), found)
    worker.on("PUT /connectors/a/stop", (404, "<html>Not Found"), (204, None))
    assert connect(worker.url).get("/connectors/a") == {"name": "a"}
    assert connect(worker.url).send("PUT", "/connectors/a/stop") is None


def test_a_worker_that_never_has_its_resources_is_named_as_what_may_be_none(
    worker: RestServer,
) -> None:
    worker.on("GET /connectors/a", (404, "<html>Not Found"))
    with pytest.raises(
        ConnectctlError, match="is still starting, or the address is not a worker's"
    ) as caught:
        connect(worker.url, timeout=2).get("/connectors/a")
    assert caught.value.code == "starting"


def test_a_change_that_hangs_is_not_sent_to_another_worker(worker: RestServer) -> None:
    with rest_server({"PUT /x": (0, 60)}) as hanging:
        with pytest.raises(TimedOut, match="did not answer"):
            connect(hanging.url, worker.url, timeout=0.4).send("PUT", "/x")
        assert worker.requests() == []


def test_a_change_whose_connection_breaks_is_not_sent_again(worker: RestServer) -> None:
    worker.on("PUT /x", (0, 0))
    with pytest.raises(Unreachable, match="broke"):
        connect(worker.url, worker.url).send("PUT", "/x")
    assert worker.requests() == ["PUT /x"]


def test_nobody_there_is_unreachable_and_names_every_worker() -> None:
    with pytest.raises(Unreachable, match=r"127.0.0.1:1 .*127.0.0.1:2 "):
        connect(NOBODY, "http://127.0.0.1:2").get("/")


def test_no_worker_known_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="--rest"):
        connect().get("/")


def test_an_address_without_a_scheme_is_bad_input() -> None:
    with pytest.raises(BadInput, match="http://HOST:PORT"):
        connect("worker-1:8083")


def test_an_answer_that_is_not_json_tells_how_it_begins(worker: RestServer) -> None:
    worker.on("GET /", (200, "<html>welcome"))
    with pytest.raises(ConnectctlError, match="<html>welcome"):
        connect(worker.url).get("/")


def test_an_error_that_is_not_json_is_told_by_its_reason(worker: RestServer) -> None:
    worker.on("GET /x", (500, "<html>oops"))
    with pytest.raises(ConnectctlError, match="Internal Server Error"):
        connect(worker.url).get("/x")


def test_the_one_500_that_connect_calls_safe_is_repeated(worker: RestServer) -> None:
    message = (
        "Failed to write to config topic; this may be due to a transient error and the "
        "request can be safely retried"
    )
    worker.on("PUT /x", (500, {"error_code": 500, "message": message}), (200, {"ok": True}))
    assert connect(worker.url).send("PUT", "/x", {"a": 1}) == {"ok": True}
    assert [asked.body for asked in worker.asked] == [{"a": 1}, {"a": 1}]


UNEXPLAINED = {"error_code": 500, "message": "Failed to modify offsets for source connector a"}


def test_offsets_that_a_worker_failed_to_write_without_a_reason_are_sent_again(
    worker: RestServer,
) -> None:
    worker.on("PATCH /x", (500, UNEXPLAINED), (200, {"message": "altered"}))
    assert connect(worker.url).send("PATCH", "/x", {"offsets": []}) == {"message": "altered"}
    assert [asked.body for asked in worker.asked] == [{"offsets": []}] * 2


def test_offsets_that_a_worker_fails_to_write_every_time_are_sent_three_times(
    worker: RestServer,
) -> None:
    worker.on("PATCH /x", *[(500, UNEXPLAINED)] * 4)
    with pytest.raises(ConnectctlError, match="Failed to modify offsets for source connector a"):
        connect(worker.url).send("PATCH", "/x", {"offsets": []})
    assert len(worker.asked) == 3


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"username": "ops", "password": "secret"}, "Basic b3BzOnNlY3JldA=="),
        ({"token": "abc"}, "Bearer abc"),
        ({}, None),
    ],
)
def test_credentials_are_sent_as_configured(
    worker: RestServer, auth: dict[str, Any], expected: str | None
) -> None:
    connect(worker.url, **auth).get("/")
    headers = {name.lower(): value for name, value in worker.asked[0].headers.items()}
    assert headers.get("authorization") == expected


def test_credentials_do_not_follow_a_redirect(worker: RestServer) -> None:
    with rest_server() as elsewhere:
        worker.on("GET /", (302, elsewhere.url))
        with pytest.raises(ConnectctlError, match=elsewhere.url.removeprefix("http://")):
            connect(worker.url, token="abc").get("/")
        assert elsewhere.asked == []


def test_creating_a_connector_that_exists_does_not_wait_for_a_rebalance(worker: RestServer) -> None:
    worker.on(
        "POST /connectors", (409, {"error_code": 409, "message": "Connector a already exists"})
    )
    worker.on("GET /connectors/a", (200, {"name": "a"}))
    with pytest.raises(ConnectctlError, match="already exists"):
        connect(worker.url, timeout=20).send("POST", "/connectors", {"name": "a", "config": {}})
    assert worker.requests() == ["POST /connectors", "GET /connectors/a"]


@given(st.text())
def test_names_are_escaped_as_urls_want_it(name: str) -> None:
    assert path_of("connectors", name, "status") == f"/connectors/{quote(name, safe='')}/status"


def test_a_missing_certificate_file_is_bad_input() -> None:
    with pytest.raises(BadInput, match="rest_tls"):
        Connect(["https://127.0.0.1:1"], auth={}, tls={"ca": "/nowhere.pem"}, timeout=1).get("/")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secure(certificate: Certificates) -> Iterator[RestServer]:
    """A worker that speaks TLS and wants a certificate from its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    context.load_verify_locations(certificate.authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    with rest_server({"GET /": (200, {"version": "4.3.1"})}, tls=context) as server:
        yield server


def test_a_worker_whose_authority_is_trusted_is_asked(
    secure: RestServer, certificate: Certificates
) -> None:
    tls = {
        "ca": certificate.authority,
        "certificate": certificate.certificate,
        "key": certificate.key,
    }
    assert Connect([secure.url], auth={}, tls=tls, timeout=60).get("/") == {"version": "4.3.1"}


def test_a_worker_whose_authority_is_unknown_is_unreachable_and_says_why(
    secure: RestServer,
) -> None:
    with pytest.raises(Unreachable, match="its certificate is signed by"):
        Connect([secure.url], auth={"token": "abc"}, tls={}, timeout=60).get("/")
    assert secure.asked == []


def test_verification_can_be_switched_off(secure: RestServer) -> None:
    assert Connect([secure.url], auth={}, tls={"verify": False}, timeout=60).get("/") == {
        "version": "4.3.1"
    }


def test_what_the_system_trusts_is_read_once_and_again_where_the_environment_says_otherwise(
    worker: RestServer,
    secure: RestServer,
    certificate: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, real = [], ssl.create_default_context

    def create(**given: Any) -> ssl.SSLContext:
        read.append(given)
        return real(**given)

    monkeypatch.setattr(ssl, "create_default_context", create)
    for trusted in (None, certificate.authority):
        monkeypatch.setenv("SSL_CERT_DIR", f"/nowhere/{trusted}")
        if trusted is not None:
            monkeypatch.setenv("SSL_CERT_FILE", trusted)
        for _ in range(3):
            assert connect(worker.url).get("/") == {"version": "4.3.1"}
    assert connect(secure.url).get("/") == {"version": "4.3.1"}
    assert read == [{}, {}]
