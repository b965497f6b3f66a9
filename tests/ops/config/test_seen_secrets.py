"""Secrets of configurations are found in any text, however many there are."""

from __future__ import annotations

import pytest
from connectctl.ops.config import masking
from hypothesis import given
from hypothesis import strategies as st

FEW = "ab1"
"""So few characters that secrets overlap, begin alike and are parts of each other."""


def hidden(secrets: list[str], text: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masking, "seen_secrets", masking.SeenSecrets())
        for secret in secrets:
            masking.remember({"door": secret}, frozenset({"door"}))
        return masking.secrets_hidden(text)


@given(
    st.lists(st.text(FEW, min_size=masking.SHORTEST_SEEN, max_size=9), max_size=30),
    st.text(FEW + " ", max_size=60),
)
def test_no_secret_stays_and_a_text_without_any_is_unchanged(secrets: list[str], text: str) -> None:
    found = hidden(secrets, text)
    assert not [secret for secret in secrets if secret in found]
    if not any(secret in text for secret in secrets):
        assert found == text


def test_one_of_very_many_is_hidden_also_where_another_is_its_beginning() -> None:
    secrets = [f"secret-{n:06}" for n in range(20_000)]
    text = f"login with {secrets[-1]} and {secrets[0]}-longer"
    assert hidden([*secrets, f"{secrets[0]}-longer"], text) == (
        f"login with {masking.MASK} and {masking.MASK}"
    )
