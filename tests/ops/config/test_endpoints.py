"""Addresses that a person writes."""

from __future__ import annotations

import pytest
from connectctl.ops.config.endpoints import problem_of_brokers, problem_of_url


@pytest.mark.parametrize(
    "good",
    [
        "b:9092",
        "b",
        "b:1,c:65535",
        " b:9092 , c:9092 ",
        "[::1]:9092",
        "PLAINTEXT://b:9092",
        "10.0.0.1:9092",
        "b_1.x:9092,",
    ],
)
def test_brokers_that_can_be_dialled(good: str) -> None:
    assert problem_of_brokers(good) is None


@pytest.mark.parametrize(
    "bad", ["", ",", ":9092", "b:", "b:0", "b:65536", "b:x", "b:9092/x", "a b:1", "::1:9092", "b:٣"]
)
def test_brokers_that_cannot(bad: str) -> None:
    assert problem_of_brokers(bad)


@pytest.mark.parametrize(
    "good", ["http://w:8083", "https://w", "https://[::1]:8083/connect", "http://u:p@w:8083"]
)
def test_urls_of_workers(good: str) -> None:
    assert problem_of_url(good) is None


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "w:8083",
        "ftp://w",
        "http://",
        "http://:8083",
        "http://w:0",
        "http://w:99999",
        "http://[::1",
    ],
)
def test_urls_of_nobody(bad: str) -> None:
    assert problem_of_url(bad)
