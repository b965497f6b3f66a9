"""Hides secrets in text that others wrote: output of commands, and the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

MASK = "******"
SHORTEST = 4
"""Known secrets of fewer characters are not looked for: hiding every ``on`` of a text hides the text."""

_SECRET = r"(?:password|passwd|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)"
# Begins where a word begins: tried at every letter of a long word, it would take forever.
_NAME = rf"(?<![\w.-])[\w.-]{{0,100}}{_SECRET}[\w.-]{{0,100}}"
_SIGN = r"\\?[\"']?\s*[=:]\s*"
# In quotes, in quotes that are themselves escaped, or in quotes that the text does not end.
_QUOTED = r"\\\"(?:(?!\\\").)*\\\"|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[\"'].*"


@cache
def _rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """What to hide, with what to keep of it. Made when first needed: every command starts faster without."""
    return (
        (
            re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
            r"\1",
        ),
        # One that lost its beginning.
        (re.compile(r"\A.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL), ""),
        (re.compile(rf"((?<![\w.-])[\w.-]{{0,100}}jaas[\w.-]{{0,100}}{_SIGN}).*", re.IGNORECASE), r"\1"),
        (re.compile(r"((?:proxy-)?authorization[\"']?\s*[:=]\s*)[^'\"\n]+", re.IGNORECASE), r"\1"),
        (re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/=-]{6,}", re.IGNORECASE), r"\1"),
        # A line of a properties file: its value goes on to the end.
        (re.compile(rf"^([ \t]*(?=\w+\.){_NAME}\s*[=:]\s*).+$", re.IGNORECASE | re.MULTILINE), r"\1"),
        (re.compile(rf"({_NAME}{_SIGN})(?:{_QUOTED}|[^\s;&\"']+)", re.IGNORECASE), r"\1"),
        (re.compile(rf"((?<!\S)(?=-){_NAME}\s+)(?:{_QUOTED}|[^\s\"']+)", re.IGNORECASE), r"\1"),
        (re.compile(r"(sshpass\s+-p\s*)\S+"), r"\1"),
        (re.compile(r"((?<!\S)(?:-u|--user)[ =]?[\"']?[^\s:\"']+:)[^\s\"']+"), r"\1"),
        (re.compile(r"(?<=//)[^/@\s:]+:[^/@\s]+(?=@)"), ""),
    )


def masked(text: str, known: Iterable[str] = ()) -> str:
    """``text`` without the secrets in ``known``, and without what its surroundings call a secret.

    That is: what follows a name such as ``password=`` or an option such as ``--token``, ``Authorization`` headers, JAAS
    configurations, private keys, and user information in a URL.
    """
    for secret in sorted({s for s in known if len(s) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    for rule, kept in _rules():
        text = rule.sub(kept + MASK, text)
    return text
