"""OAUTHBEARER tokens for kafka-python, from the properties by which librdkafka gets its own.

Two of librdkafka's methods: ``oidc`` asks a token endpoint for client credentials (RFC 6749 §4.4),
``default`` makes an unsecured token from ``sasl.oauthbearer.config`` where
``enable.sasl.oauthbearer.unsecure.jwt`` allows it.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any

from connectctl.ops.clients.connection_errors import check_files
from connectctl.ops.clients.rest.http_answer import ask
from connectctl.ops.config.json_shape import an_object, text
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, NotAuthorized, Unreachable

_MARGIN = 30.0
"""Seconds before its end at which a token is no longer used."""
_TIMEOUT = 10.0


def provider(properties: Mapping[str, Any]) -> Any:
    """kafka-python's token provider. Raises ``BadInput`` for what librdkafka would not take
    either.
    """
    from kafka.net.sasl.oauth import AbstractTokenProvider

    fetch = (
        _oidc
        if str(properties.get("sasl.oauthbearer.method", "default")).lower() == "oidc"
        else _unsecured
    )
    given = dict(properties)
    _check(given, fetch is _oidc)

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
        def __init__(self) -> None:
            self._token, self._until = "", 0.0

        def token(self) -> str:
            if time.time() > self._until - _MARGIN:
                self._token, self._until = fetch(given)
            return self._token

        def extensions(self) -> dict[str, str]:
            pairs = str(given.get("sasl.oauthbearer.extensions") or "").split(",")
            return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    return Tokens()


def _check(properties: Mapping[str, Any], oidc: bool) -> None:
    if not oidc:
        if str(properties.get("enable.sasl.oauthbearer.unsecure.jwt", "false")).lower() != "true":
            hint = (
                "Set sasl.oauthbearer.method=oidc and its endpoint, or "
                "enable.sasl.oauthbearer.unsecure.jwt=true."
            )
            raise BadInput("client: OAUTHBEARER has no token source configured", next_step=hint)
        return
    for name in ("client.id", "client.secret", "token.endpoint.url"):
        if not properties.get(f"sasl.oauthbearer.{name}"):
            raise BadInput(
                f"client: sasl.oauthbearer.{name} is missing, which the method oidc needs"
            )


def _oidc(properties: Mapping[str, Any]) -> tuple[str, float]:
    """``(token, end in seconds since the epoch)`` from the token endpoint."""
    import httpx

    url = str(properties["sasl.oauthbearer.token.endpoint.url"])
    form = {"grant_type": "client_credentials"}
    if properties.get("sasl.oauthbearer.scope"):
        form["scope"] = str(properties["sasl.oauthbearer.scope"])
    who = (
        str(properties["sasl.oauthbearer.client.id"]),
        str(properties["sasl.oauthbearer.client.secret"]),
    )
    verify: Any = properties.get("https.ca.location") or True
    check_files({"client.https.ca.location": properties.get("https.ca.location")})
    try:
        with httpx.Client(verify=verify) as client:
            answer = ask(
                client, "POST", url, patience=_TIMEOUT, connect=_TIMEOUT, data=form, auth=who
            )
        answer.raise_for_status()
        data = read_json(answer.content)
        return str(data["access_token"]), time.time() + float(data.get("expires_in", 300))
    except httpx.HTTPStatusError as e:
        refused = f"it answers {e.response.status_code}{_reason(e.response.content)}"
        hint = (
            "Check sasl.oauthbearer.client.id, client.secret and scope in client: connectctl "
            "context show."
        )
        raise NotAuthorized(
            f"Authentication failed: the token endpoint {url} returned no token",
            why=refused,
            next_step=hint,
        ) from e
    except httpx.HTTPError as e:
        raise Unreachable(
            f"The token endpoint {url} does not answer", why=str(e) or type(e).__name__
        ) from e
    except (ValueError, KeyError, TypeError, OverflowError) as e:
        what = f"Authentication failed: the token endpoint {url} returned no token"
        raise NotAuthorized(what, why="its answer has no token") from e


def _reason(content: bytes) -> str:
    """The error that a token endpoint names (RFC 6749, 5.2), such as ``invalid_scope``; empty for
    another answer.
    """
    try:
        data = read_json(content)
        an_object({"error": text}, {"error_description": text})(data)
    except ValueError:
        return ""
    return f" ({', '.join(filter(None, (data['error'], data.get('error_description'))))})"


def _unsecured(properties: Mapping[str, Any]) -> tuple[str, float]:
    """An unsigned token (RFC 7515 A.5), with the claims that ``sasl.oauthbearer.config`` names."""
    config = dict(
        part.split("=", 1)
        for part in str(properties.get("sasl.oauthbearer.config") or "").split()
        if "=" in part
    )
    now = time.time()
    life = float(config.get("lifeSeconds", 3600))
    claims: dict[str, Any] = {
        config.get("principalClaimName", "sub"): config.get("principal", ""),
        "iat": now,
        "exp": now + life,
    }
    if config.get("scope"):
        claims[config.get("scopeClaimName", "scope")] = config["scope"].split(",")
    return f"{_part({'alg': 'none'})}.{_part(claims)}.", now + life


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
