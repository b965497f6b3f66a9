"""The one masker: hides secrets in configurations, and in text that others wrote.

A property is a secret by its plugin's own definition (type PASSWORD, where a worker tells), by its name, or in part by the
form of its value: user information in a URL, a password among parameters, a webhook's path, a token. References to values
that live elsewhere (``${file:…}``, KIP-297) are not secrets and stay. What once was seen as a secret in a configuration is
hidden in foreign text from then on, whatever stands around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from connectctl.ops.config import secret_forms
from connectctl.ops.config.json_text import read_json

MASK = "******"
BY_NAME = f"{MASK} (by its name)"
"""A value that was hidden for its property's name alone: no plugin that was asked defines it as a password."""
SHORTEST = 4
"""Known secrets of fewer characters are not looked for: hiding every ``on`` of a text hides the text."""
SHORTEST_SEEN = 6
"""As ``SHORTEST``, of secrets that were found in configurations, where defaults such as ``test`` stand as well."""
_MOST_SEEN = 10_000

_WORDS = (
    r"(?:passw(?:or)?d|passwd|pwd|passphrase|passcode|secret|token(?!i[sz])|credential|jaas|authori[sz]ation(?![._-])|"
    r"api[._-]?key|(?:access|account|private|secret|shared|sas|master|encryption|signing|license)[._-]?key|user[._-]?info|"
    r"webhook|passwort|kennwort|contrase[nñ]a|mnemonic|shared[._-]?access[._-]?signature|private[._-]?pem)"
)
_LAST_WORDS = (
    r"pass|psk|cookies?|auth|creds?|pw|salt|pepper|pin|puk|otp|totp|pat|community|sas|kek|dek|hmac|jwt|"
    r"(?:user|db|my|root|admin|ftp|smtp|login|ssh|proxy|ldap|mail|sql)(?:pass|pw)"
)
_NAME_OF_SECRET = re.compile(rf"{_WORDS}|(?:^|[._-])(?:{_LAST_WORDS})$|(?:^|[._-])key(?:\.pem)?$")
_LOGIN = re.compile(r"(?:^|[._-])(?:login|user|username|account)$")
# Of a property such as ``auth``: how somebody logs in, not with what.
_METHODS = re.compile(
    r"(?:none|basic|digest|negotiate|ntlm|bearer|oauth2?|oidc|kerberos|gssapi|ldap|plain|scram(?:-sha-\d+)?|ssl|m?tls|sasl|"
    r"(?:sasl_)?(?:ssl|plaintext|inherit)|user_info|url|static|default|password|token|apikey|(?:aws_)?iam|simple|anonymous|"
    r"required|optional|enabled|disabled|yes|no|on|off|\d)",
    re.IGNORECASE,
)
_HARMLESS_KEY = re.compile(
    r"(?:^|[._-])(?:routing|partition|primary|message|record|document|doc|sort|hash|row|foreign|unique|group|event|map|"
    r"ordering|cache|public|object)[._-]?key$"
)
# What is said about a secret: how long it lives, who gets it, where its file is.
_ABOUT_SECRET = re.compile(
    r"[._-](?:ms|seconds|bytes|class|type|location|path|file|enabled?|disabled?|provider|algorithm|length|count|format|"
    r"audience|claim(?:[._-]name)?|issuer|(?:endpoint[._-])?ur[il]|endpoint)$|(?:^|[._-])(?:max|min)[._-]?tokens?$"
)
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_PLAIN = {"true", "false", "null", "none", ""}

_SECRET = (
    r"(?:password|passwd|pwd|passphrase|passcode|secret|token(?!i[sz])|credential|api[._-]?key|"
    r"(?:access|account|private|secret|shared)[_-]?key|user[._-]info)"
)
# Begins where a word begins: tried at every letter of a long word, it would take forever.
_NAME = rf"(?<![\w.-])[\w.-]{{0,100}}{_SECRET}[\w.-]{{0,100}}"
_EQUALS = r"\\?[\"']?\s*=\s*"
_JSON_COLON = r"\\?[\"']\s*:\s*"
_SIGN = r"\\?[\"']?\s*[=:]\s*"
# In quotes, in quotes that are themselves escaped, or in quotes that the text does not end.
_QUOTED = r"\\\"(?:(?!\\\").)*\\\"|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[\"'].*"
_BARE = r"[^\s;&\"']+"
_ADDRESS = re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]*(?:://|jdbc:)[^\s\"'<>]*")

_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def _kept(match: re.Match[str]) -> str:
    """What a rule's first group holds stays; the rest is hidden, but for a reference."""
    kept = match[1] if match.re.groups else ""
    rest = match[0][len(kept) :]
    hidden_already = rest.startswith(MASK)
    return match[0] if hidden_already or _is_reference(rest.strip("\"'\\")) else kept + MASK


def _is_reference(text: str) -> bool:
    return bool(_REFERENCE.match(text)) and not re.search(r"\w", _REFERENCE.sub("", text))


@cache
def _by_form() -> tuple[_Rule, ...]:
    """What is a secret by its form, in a value as in a sentence. Made when first needed: commands start faster without."""
    i = re.IGNORECASE
    return (
        (
            re.compile(
                r"(-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----).*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
                re.DOTALL,
            ),
            _kept,
        ),
        # One that lost its beginning.
        (re.compile(r"\A.*?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----", re.DOTALL), _kept),
        (re.compile(rf"({_NAME}\s*=\s*)\{{[^}}\n]*\}}", i), _kept),
        (re.compile(rf"(<{_NAME}[^<>]{{0,200}}>)[^<]+", i), _kept),
        (re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]*://[^\s\"'<>]*"), _without_user_information),
        (re.compile(r"(\b(?:thin|oci8?):[^\s/@:]{0,100}/)[^\s@]{1,200}(?=@)", i), _kept),
        (re.compile(r"(https?://[^\s\"'/]{0,200}hook[^\s\"'/]{0,200}/(?:services/)?)[^\s\"'?]+", i), _kept),
        (re.compile(r"(https?://[^\s\"'/]{1,200}/(?:[\w.-]{1,50}/){0,3}(?:web)?hooks?\w{0,3}/)[^\s\"'?]+", i), _kept),
        (re.compile(r"(/bot)\d{6,}:[\w-]{20,}"), _kept),
        (re.compile(r"([?&](?:key|sig|signature|auth|code|sas|pass|access|apikey)=)[^\s&\"']+", i), _kept),
        (re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/=-]{6,}", i), _kept),
        (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), _kept),
        (re.compile(r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abeoprs]-[\w-]{10,}|AKIA[0-9A-Z]{16})\b"), _kept),
        (re.compile(r"((?<![\w.-])[\w.-]{0,100}jaas[\w.-]{0,100}\\?[\"']?\s*=\s*).*", i), _kept),
        (re.compile(rf"((?<![\w.-])[\w.-]{{0,100}}jaas[\w.-]{{0,100}}{_JSON_COLON})(?:{_QUOTED}|.*)", i), _kept),
        (re.compile(rf"((?:proxy-)?authorization\\?[\"']?\s*[:=|]\s*)(?:{_QUOTED}|[^'\"\n]+)", i), _kept),
        # In a connection string a password may hold blanks.
        (re.compile(r"(;\s*[\w ]{0,30}(?:password|pwd|pw)\s*=)[^;\"'\n]+(?=;)", i), _kept),
        # A line of a properties file: its value goes on to the end.
        (re.compile(rf"^([ \t]*(?=\w+\.){_NAME}\s*=\s*).+$", i | re.MULTILINE), _kept),
        (re.compile(rf"({_NAME}(?:{_EQUALS}|{_JSON_COLON}))(?:{_QUOTED}|{_BARE})", i), _kept),
        (re.compile(rf"((?<!\S)(?=-){_NAME}\s+)(?:{_QUOTED}|[^\s\"']+)", i), _kept),
        (re.compile(r"(sshpass\s+-p\s*)\S+"), _kept),
        (re.compile(r"((?<!\S)(?:-u|--user)[ =]?[\"']?[^\s:\"']+:)[^\s\"']+"), _kept),
        # What Kafka says of a value that does not fit.
        (
            re.compile(rf"(Invalid value ).{{1,2000}}?(?= for configuration [\w.-]{{0,100}}{_SECRET})", i | re.DOTALL),
            _kept,
        ),
        *((pattern, _kept) for pattern in secret_forms.patterns()),
        (secret_forms.base64_text(), _unless_harmless),
        (secret_forms.PAIR, _pair),
        (secret_forms.ENCODED_PAIR, _pair),
    )


@cache
def _by_colon() -> tuple[_Rule, ...]:
    """What only foreign text means so: a colon behind ``password`` in our own sentence begins a remark."""
    i = re.IGNORECASE
    return (
        (re.compile(rf"((?<![\w.-])[\w.-]{{0,100}}jaas[\w.-]{{0,100}}{_SIGN}).*", i), _kept),
        (re.compile(rf"^([ \t]*(?=\w+\.){_NAME}\s*[=:]\s*).+$", i | re.MULTILINE), _kept),
        (re.compile(rf"({_NAME}{_SIGN})(?:{_QUOTED}|{_BARE})", i), _kept),
    )


def _without_user_information(match: re.Match[str]) -> str:
    """One or more URLs without ``user:password@``, which may hold unescaped ``@`` and ``/``."""
    first, *parts = match[0].split("://")
    return "://".join([first, *map(_host_on, parts)])


def _host_on(authority: str) -> str:
    end = authority.rfind("@")
    # What references leave of it. A password may hold an unescaped slash; behind a port there is a path.
    user = _REFERENCE.sub("", authority[: max(end, 0)])
    if re.match(r"[^/@:?#]*:(?!$|\d*[/?#,])", user):
        return MASK + authority[end:]
    lone, sign, rest = authority.partition("@")
    # A token may stand for both name and password.
    return f"{MASK}@{rest}" if sign and re.fullmatch(r"[^/:?#]{20,}", _REFERENCE.sub("", lone)) else authority


def masked(text: str, known: Iterable[str] = ()) -> str:
    """Text that others wrote, without the secrets in ``known``, those of ``remember``, and what it calls a secret itself.

    That is: what follows a name such as ``password=`` or an option such as ``--token``, ``Authorization`` headers, JAAS
    configurations, private keys, and what is a secret by its form.
    """
    text = _applied(_by_form(), _without(text, known))
    return _applied(_by_colon(), text) if secret_forms.is_suspicious(text) else text


def addresses_masked(text: str) -> str:
    """A source partition or an offset as it may be shown: without the secrets of the addresses that it holds.

    Beside them nothing is hidden: a ``nextPageToken`` is a position, and rows must be told apart.
    """
    # Quicker than the pattern, for a million cells that have none.
    if "://" not in text and "jdbc:" not in text:
        return text
    return _ADDRESS.sub(lambda match: _applied(_by_form(), match[0]), text)


def our_own(text: str) -> str:
    """A sentence of ours with foreign parts: as ``masked``, but ``password: it is empty`` stays."""
    return _applied(_by_form(), _without(text, ()))


def _applied(rules: tuple[_Rule, ...], text: str) -> str:
    if secret_forms.is_suspicious(text):
        for rule, kept in rules:
            text = rule.sub(kept, text)
    return text


def _without(text: str, known: Iterable[str]) -> str:
    for secret in (*_longest_first(s for s in known if len(s) >= SHORTEST), *seen_secrets.longest_first):
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def _longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    """Of two secrets, one of which begins like the other, the longer is hidden whole."""
    return tuple(sorted(set(secrets), key=len, reverse=True))


# ------------------------------------------------------------------------------------------------------ configurations


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Whether a property, a JSON member or a parameter of this name holds a secret as a whole."""
    lower = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    if _ABOUT_SECRET.search(lower) or _HARMLESS_KEY.search(lower):
        return False
    return bool(_NAME_OF_SECRET.search(lower))


def value_of(name: str, value: str, passwords: frozenset[str] = frozenset()) -> str:
    """``value`` of the property ``name`` as it may be printed. ``passwords`` are properties that a plugin defines so.

    ``BY_NAME`` instead of ``MASK`` says that only the name speaks for a secret.
    """
    if _is_reference(value) or value in (MASK, BY_NAME):
        return value
    if name in passwords:
        return MASK
    if is_secret(name):
        return value if _is_no_secret(name, value) else BY_NAME
    if ":" in value and _LOGIN.search(name.lower()) and (pair := re.fullmatch(r"([^:/\s]+:)[^:/\s]+", value)):
        return pair[1] + MASK
    return _in_part(value)


def _is_no_secret(name: str, value: str) -> bool:
    """Return whether ``value`` cannot be the secret that ``name`` promises: yes or no, or the name of a method."""
    word = value.strip().lower()
    return word in _PLAIN - {""} or (name.lower().endswith("auth") and bool(_METHODS.fullmatch(word)))


@lru_cache(maxsize=8192)  # The same configurations come from workers, from topics, and again with each look.
def _in_part(value: str) -> str:
    """``value`` without what its form says is a secret."""
    if value.lstrip()[:1] in ("{", "["):
        return _of_json(value)
    value = _connection_string(value) if ";" in value else value
    for pattern in secret_forms.whole_values() if secret_forms.is_suspicious(value) else ():
        value = pattern.sub(_kept, value)
    return _applied(_by_colon(), _applied(_by_form(), value)) if secret_forms.is_suspicious(value) else value


def _connection_string(value: str) -> str:
    """``NAME=VALUE;NAME=VALUE`` without its secrets, which may hold blanks and quotes; anything else as it is."""
    if not secret_forms.CONNECTION_STRING.fullmatch(value):
        return value
    parts = [part.partition("=") for part in value.split(";")]
    return ";".join(
        f"{name}={MASK}" if rest and _hides(name, rest) else name + sign + rest for name, sign, rest in parts
    )


def _pair(match: re.Match[str]) -> str:
    """A pair of a query, of a form or of a connection string, without its value where its name is a secret's."""
    kept, name, value = match.groups()
    return kept + MASK if value and (secret_forms.SIGNED.fullmatch(name) or _hides(name, value)) else match[0]


def _hides(name: str, value: str) -> bool:
    found = is_secret(name.strip()) and not _is_no_secret(name, value) and not _is_reference(value.strip("\"'"))
    return found and not value.startswith(MASK)


def _unless_harmless(match: re.Match[str]) -> str:
    """A text in Base64, hidden where what it holds has a secret."""
    inside = secret_forms.decoded(match[0])
    return MASK if inside is None or _in_part(inside) != inside else match[0]


def config_of(config: Mapping[str, Any], passwords: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A connector's or a task's configuration as it may be printed."""
    return {n: v if v is None else value_of(n, str(v), passwords) for n, v in config.items()}


def _of_json(value: str) -> str:
    """A value that is itself JSON, by the names in it."""
    try:
        data = read_json(value)
        hidden = _of_data(data)
    except (ValueError, RecursionError):
        return masked(value)
    return value if hidden == data else json.dumps(hidden, ensure_ascii=False)


def _of_data(data: Any, name: str = "") -> Any:
    if name and is_secret(name) and not (isinstance(data, dict | list) and name.lower().endswith("auth")):
        return _hidden(data, name)
    if isinstance(data, dict):
        named = any(
            key.lower() in secret_forms.NAMES and isinstance(v, str) and is_secret(v) for key, v in data.items()
        )
        return {
            key: _hidden(v) if named and key.lower() in secret_forms.VALUES else _of_data(v, str(key))
            for key, v in data.items()
        }
    if isinstance(data, list):
        if data and all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in data):
            return [[key, _of_data(value, key)] for key, value in data]
        return [_of_data(item, name) for item in data]
    return value_of(name, data) if isinstance(data, str) else data


def _hidden(data: Any, name: str = "") -> Any:
    """``data`` without any text or number in it; a reference, yes and no stay."""
    if isinstance(data, dict):
        return {key: _hidden(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_hidden(item) for item in data]
    if isinstance(data, str):
        return data if _is_reference(data) or _is_no_secret(name, data) else MASK
    return data if data is None or isinstance(data, bool) else MASK


# --------------------------------------------------------------------------------------------------- what has been seen


class SeenSecrets:
    """The secrets that this process has met."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._sorted: tuple[str, ...] = ()
        self._waiting: list[tuple[Mapping[str, Any], frozenset[str]]] = []
        self._harmless: set[int] = set()

    def add(self, config: Mapping[str, Any], passwords: frozenset[str]) -> None:
        """Look for the secrets of ``config`` from now on; what they are is found out when there is a text to look at."""
        self._waiting.append((config, passwords))

    @property
    def longest_first(self) -> tuple[str, ...]:
        """All of them."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            found = {secret for config, passwords in waiting if passwords for secret in secrets_of(config, passwords)}
            for name, value in _pairs([config for config, passwords in waiting if not passwords]):
                if hash((name, value)) in self._harmless:
                    continue
                if secrets := set(secrets_of({name: value})):
                    found |= secrets
                else:
                    self._harmless.add(hash((name, value)))
            if new := list(found - self._all)[: max(_MOST_SEEN - len(self._all), 0)]:
                self._all.update(new)
                self._sorted = _longest_first(self._all)
        return self._sorted


def _pairs(configs: list[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Each name and text once: tasks repeat what their connector has, and connectors what others have."""
    try:
        found = set[tuple[str, Any]]().union(*(config.items() for config in configs))
    except TypeError:  # a value that is a list or an object of JSON
        found = {pair for config in configs for pair in config.items() if isinstance(pair[1], str)}
    return {pair for pair in found if isinstance(pair[1], str)}


seen_secrets = SeenSecrets()


def remember(config: Mapping[str, Any], passwords: frozenset[str] = frozenset()) -> None:
    """Hide, from now on, the secrets of this configuration wherever foreign text repeats them.

    A worker's stack trace may quote a password with nothing around it that calls it one.
    """
    seen_secrets.add(config, passwords)


def secrets_of(config: Mapping[str, Any], passwords: frozenset[str] = frozenset()) -> Iterator[str]:
    """What ``config_of`` hides, long enough to be looked for."""
    for name, value in config.items():
        shown = value_of(name, value, passwords) if isinstance(value, str) else value
        if shown != value:
            for secret in _hidden_in(value, shown):
                if len(secret) >= SHORTEST_SEEN and secret.lower() not in _PLAIN:
                    yield secret


def _hidden_in(value: str, shown: str) -> Iterator[str]:
    """The parts of ``value`` that ``shown`` has masks for."""
    if shown in (MASK, BY_NAME):
        yield value
        # A pair: user:password.
        yield from (part for part in value.split(":")[1:] if part and value.count(":") == 1)
        yield from re.findall(r"password\s*=\s*[\"']?([^\"';\s]+)", value)
        return
    pieces = [re.escape(piece) for piece in shown.split(MASK)]
    found = re.fullmatch("(.+?)".join(pieces), value, re.DOTALL)
    for part in found.groups() if found else ():
        bare = part.strip("\"'\\")
        yield bare.partition(":")[2] or bare if "://" in value else bare
