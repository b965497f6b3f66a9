"""A token endpoint that gives no token: what it refused is said first, in its own words."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from connectctl.ops.clients.kafka_protocol import oauth
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from fakes.anyjson import encodings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

URL = "https://login/token"
GIVEN = {
    "sasl.oauthbearer.token.endpoint.url": URL,
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "geheim-1",
    "sasl.oauthbearer.scope": "kafka",
}


def answer(monkeypatch: pytest.MonkeyPatch, status: int, content: bytes) -> None:
    def ask(*_: Any, **__: Any) -> httpx.Response:
        return httpx.Response(status, content=content, request=httpx.Request("POST", URL))

    monkeypatch.setattr(oauth, "ask", ask)


def test_a_scope_that_is_refused_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, 400, b'{"error": "invalid_scope", "error_description": "kafka is unknown"}')
    with pytest.raises(NotAuthorized) as caught:
        oauth._oidc(GIVEN)
    assert caught.value.what == f"Authentication failed: the token endpoint {URL} returned no token"
    assert caught.value.why == "it answers 400 (invalid_scope, kafka is unknown)"
    assert "scope" in str(caught.value.next_step)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), status=st.sampled_from([200, 400, 401, 500]))
def test_any_answer_is_a_token_or_an_error_of_ours(
    data: st.DataObject, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(
        monkeypatch,
        status,
        data.draw(encodings({"access_token": "t", "expires_in": 300, "error": "e"})),
    )
    try:
        token, _ = oauth._oidc(GIVEN)
    except ConnectctlError:
        return
    assert isinstance(token, str)


def test_an_authority_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConnectctlError, match=r"https\.ca\.location cannot be read: /nowhere\.pem"):
        oauth._oidc(GIVEN | {"https.ca.location": "/nowhere.pem"})
