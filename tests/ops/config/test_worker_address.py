"""A worker's address, which a worker says of itself, is never more than an address."""

from __future__ import annotations

import pytest
from connectctl.ops.config.worker_address import Address, parse
from connectctl.ops.core.errors import BadInput


@pytest.mark.parametrize(
    ("text", "host", "worker", "url"),
    [
        ("worker-1:8083", "worker-1", "worker-1:8083", "http://worker-1:8083"),
        ("10.0.0.1:80", "10.0.0.1", "10.0.0.1:80", "http://10.0.0.1:80"),
        ("[::1]:8083", "::1", "[::1]:8083", "http://[::1]:8083"),
        ("https://a.example:8443/", "a.example", "a.example:8443", "https://a.example:8443"),
    ],
)
def test_an_address_is_read(text: str, host: str, worker: str, url: str) -> None:
    found = parse(text)
    assert (found.host, found.worker, found.url) == (host, worker, url)


def test_the_scheme_is_the_one_given_where_the_address_has_none() -> None:
    assert parse("a:1", "https") == Address("a", 1, "https")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a:",
        ":1",
        "a:0",
        "a:65536",
        "-oProxyCommand=x:1",
        "a b:1",
        "a;b:1",
        "../a:1",
        "a/b:1",
        "$(x):1",
        "a:1\n",
    ],
)
def test_what_could_mean_more_to_a_shell_or_a_command_is_no_address(text: str) -> None:
    with pytest.raises(BadInput, match="not an address of a worker"):
        parse(text)
