"""The only masker: it hides secrets in configurations, and in text from other programs.

A property is a secret by its plugin's definition (type PASSWORD, if a worker reports it) or by its
name. A part of a value is a secret by its form: user information in a URL, a password among
parameters, a webhook's path, a token. References to values that are stored elsewhere
(``${file:…}``, KIP-297) are not secrets and are kept. A secret of a configuration is hidden in all
later text, whatever the text around it is.
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
"""The mask of a value that is hidden only because of its property's name: no asked plugin defines
it as a password.
"""
SHORTEST = 4
"""The length of the shortest known secret that is searched in texts: hiding every ``on`` would hide
the text.
"""
SHORTEST_SEEN = 6
"""The same for secrets that were found in configurations, which also have defaults such as
``test``.
"""
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
# Values of a property such as ``auth`` that name the method of authentication and are no secret.
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
# Properties about a secret: its lifetime, its audience, the path of its file.
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
# It begins at the beginning of a word: matching at every letter of a long word would take too long.
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
    """Return a match with its first group kept and the rest hidden, unless the rest is a
    reference.
    """
    kept = match[1] if match.re.groups else ""
    rest = match[0][len(kept) :]
    hidden_already = rest.startswith(MASK)
    return match[0] if hidden_already or _is_reference(rest.strip("\"'\\")) else kept + MASK


def _is_reference(text: str) -> bool:
    return bool(_REFERENCE.match(text)) and not re.search(r"\w", _REFERENCE.sub("", text))


@cache
def _by_form() -> tuple[_Rule, ...]:
    """Return the rules for secrets by their form, in values and in sentences.

    They are compiled when they are first needed, so that commands start faster.
    """
    i = re.IGNORECASE
    return (
        (
            re.compile(
                r"(-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----).*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
                re.DOTALL,
            ),
            _kept,
        ),
        # A private key without its beginning.
        (re.compile(r"\A.*?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----", re.DOTALL), _kept),
        (re.compile(rf"({_NAME}\s*=\s*)\{{[^}}\n]*\}}", i), _kept),
        (re.compile(rf"(<{_NAME}[^<>]{{0,200}}>)[^<]+", i), _kept),
        (re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]*://[^\s\"'<>]*"), _without_user_information),
        (re.compile(r"(\b(?:thin|oci8?):[^\s/@:]{0,100}/)[^\s@]{1,200}(?=@)", i), _kept),
        (
            re.compile(
                r"(https?://[^\s\"'/]{0,200}hook[^\s\"'/]{0,200}/(?:services/)?)[^\s\"'?]+", i
            ),
            _kept,
        ),
        (
            re.compile(
                r"(https?://[^\s\"'/]{1,200}/(?:[\w.-]{1,50}/){0,3}(?:web)?hooks?\w{0,3}/)[^\s\"'?]+",
                i,
            ),
            _kept,
        ),
        (re.compile(r"(/bot)\d{6,}:[\w-]{20,}"), _kept),
        (
            re.compile(
                r"([?&](?:key|sig|signature|auth|code|sas|pass|access|apikey)=)[^\s&\"']+", i
            ),
            _kept,
        ),
        (re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/=-]{6,}", i), _kept),
        (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), _kept),
        (
            re.compile(
                r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abeoprs]-[\w-]{10,}|AKIA[0-9A-Z]{16})\b"
            ),
            _kept,
        ),
        (re.compile(r"((?<![\w.-])[\w.-]{0,100}jaas[\w.-]{0,100}\\?[\"']?\s*=\s*).*", i), _kept),
        (
            re.compile(
                rf"((?<![\w.-])[\w.-]{{0,100}}jaas[\w.-]{{0,100}}{_JSON_COLON})(?:{_QUOTED}|.*)", i
            ),
            _kept,
        ),
        (
            re.compile(
                rf"((?:proxy-)?authorization\\?[\"']?\s*[:=|]\s*)(?:{_QUOTED}|[^'\"\n]+)", i
            ),
            _kept,
        ),
        # In a connection string a password may hold blanks.
        (re.compile(r"(;\s*[\w ]{0,30}(?:password|pwd|pw)\s*=)[^;\"'\n]+(?=;)", i), _kept),
        # A line of a properties file: its value extends to the end.
        (re.compile(rf"^([ \t]*(?=\w+\.){_NAME}\s*=\s*).+$", i | re.MULTILINE), _kept),
        (re.compile(rf"({_NAME}(?:{_EQUALS}|{_JSON_COLON}))(?:{_QUOTED}|{_BARE})", i), _kept),
        (re.compile(rf"((?<!\S)(?=-){_NAME}\s+)(?:{_QUOTED}|[^\s\"']+)", i), _kept),
        (re.compile(r"(sshpass\s+-p\s*)\S+"), _kept),
        (re.compile(r"((?<!\S)(?:-u|--user)[ =]?[\"']?[^\s:\"']+:)[^\s\"']+"), _kept),
        # Kafka's message about an invalid value.
        (
            re.compile(
                rf"(Invalid value ).{{1,2000}}?(?= for configuration [\w.-]{{0,100}}{_SECRET})",
                i | re.DOTALL,
            ),
            _kept,
        ),
        *((pattern, _kept) for pattern in secret_forms.patterns()),
        (secret_forms.base64_text(), _unless_harmless),
        (secret_forms.PAIR, _pair),
        (secret_forms.ENCODED_PAIR, _pair),
    )


@cache
def _by_colon() -> tuple[_Rule, ...]:
    """Return the rules for text from other programs only: in our messages a remark follows
    ``password:``.
    """
    i = re.IGNORECASE
    return (
        (re.compile(rf"((?<![\w.-])[\w.-]{{0,100}}jaas[\w.-]{{0,100}}{_SIGN}).*", i), _kept),
        (re.compile(rf"^([ \t]*(?=\w+\.){_NAME}\s*[=:]\s*).+$", i | re.MULTILINE), _kept),
        (re.compile(rf"({_NAME}{_SIGN})(?:{_QUOTED}|{_BARE})", i), _kept),
    )


def _without_user_information(match: re.Match[str]) -> str:
    """Return URLs without ``user:password@``, which may hold unescaped ``@`` and ``/``."""
    first, *parts = match[0].split("://")
    return "://".join([first, *map(_host_on, parts)])


def _host_on(authority: str) -> str:
    end = authority.rfind("@")
    # Without references. A password may hold an unescaped slash; after a port there is a path.
    user = _REFERENCE.sub("", authority[: max(end, 0)])
    if re.match(r"[^/@:?#]*:(?!$|\d*[/?#,])", user):
        return MASK + authority[end:]
    lone, sign, rest = authority.partition("@")
    # A token may replace both name and password.
    return (
        f"{MASK}@{rest}"
        if sign and re.fullmatch(r"[^/:?#]{20,}", _REFERENCE.sub("", lone))
        else authority
    )


def masked(text: str, known: Iterable[str] = ()) -> str:
    """Return text from other programs without the secrets in ``known``, those of ``remember``, and
    those it names.

    Secrets in the text itself follow a name such as ``password=`` or an option such as ``--token``,
    are ``Authorization`` headers, JAAS configurations or private keys, or have the form of a
    secret.
    """
    text = _applied(_by_form(), _without(text, known))
    return _applied(_by_colon(), text) if secret_forms.is_suspicious(text) else text


def secrets_hidden(text: str) -> str:
    """Return ``text`` without the secrets of ``remember``."""
    return _without(text, ())


def addresses_masked(text: str) -> str:
    """Return a source partition or an offset in printable form: the secrets in its addresses are
    hidden.

    Other values are not hidden: a ``nextPageToken`` is a position, and rows must be
    distinguishable.
    """
    # This is faster than the pattern for a million cells without an address.
    if "://" not in text and "jdbc:" not in text:
        return text
    return _ADDRESS.sub(lambda match: _applied(_by_form(), match[0]), text)


def masked_message(text: str) -> str:
    """Return a message of ours with foreign parts, masked as by ``masked``, but
    ``password: it is empty`` is kept.
    """
    return _applied(_by_form(), _without(text, ()))


def _applied(rules: tuple[_Rule, ...], text: str) -> str:
    if secret_forms.is_suspicious(text):
        for rule, replace in rules:
            text = rule.sub(replace, text)
    return text


def _without(text: str, known: Iterable[str]) -> str:
    for secret in _longest_first(s for s in known if len(s) >= SHORTEST):
        text = text.replace(secret, MASK)
    for secret in seen_secrets.possible_in(text):
        text = text.replace(secret, MASK)
    return text


def _longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return secrets sorted so that a secret is hidden before one that is its prefix."""
    return tuple(sorted(set(secrets), key=len, reverse=True))


# ----------------------------------------------------------------------------------- configurations


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Return whether the value of a property, JSON member or parameter of this name is a secret."""
    lower = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    if _ABOUT_SECRET.search(lower) or _HARMLESS_KEY.search(lower):
        return False
    return bool(_NAME_OF_SECRET.search(lower))


def value_of(name: str, value: str, passwords: frozenset[str] = frozenset()) -> str:
    """Return the printable ``value`` of the property ``name``.

    ``passwords`` are properties that a plugin defines as such. ``BY_NAME`` instead of ``MASK``
    means that only the name indicates a secret.
    """
    if _is_reference(value) or value in (MASK, BY_NAME):
        return value
    if name in passwords:
        return MASK
    if is_secret(name):
        return value if _is_no_secret(name, value) else BY_NAME
    if (
        ":" in value
        and _LOGIN.search(name.lower())
        and (pair := re.fullmatch(r"([^:/\s]+:)[^:/\s]+", value))
    ):
        return pair[1] + MASK
    return _in_part(value)


def _is_no_secret(name: str, value: str) -> bool:
    """Return whether ``value`` cannot be the secret that ``name`` suggests: a boolean, or the name
    of a method.
    """
    word = value.strip().lower()
    return word in _PLAIN - {""} or (
        name.lower().endswith("auth") and bool(_METHODS.fullmatch(word))
    )


# The same configurations are read from workers and from topics, many times.
@lru_cache(maxsize=8192)
def _in_part(value: str) -> str:
    """Return ``value`` without the parts that are secrets by their form."""
    if value.lstrip()[:1] in ("{", "["):
        return _of_json(value)
    value = _connection_string(value) if ";" in value else value
    for pattern in secret_forms.whole_values() if secret_forms.is_suspicious(value) else ():
        value = pattern.sub(_kept, value)
    return (
        _applied(_by_colon(), _applied(_by_form(), value))
        if secret_forms.is_suspicious(value)
        else value
    )


def _connection_string(value: str) -> str:
    """Return ``NAME=VALUE;NAME=VALUE`` without its secrets, which may hold blanks and quotes; other
    values unchanged.
    """
    if not secret_forms.CONNECTION_STRING.fullmatch(value):
        return value
    parts = [part.partition("=") for part in value.split(";")]
    return ";".join(
        f"{name}={MASK}" if rest and _hides(name, rest) else name + sign + rest
        for name, sign, rest in parts
    )


def _pair(match: re.Match[str]) -> str:
    """Return a pair of a query, form or connection string, without its value if its name is a
    secret's.
    """
    kept, name, value = match.groups()
    return (
        kept + MASK
        if value and (secret_forms.SIGNED.fullmatch(name) or _hides(name, value))
        else match[0]
    )


def _hides(name: str, value: str) -> bool:
    found = (
        is_secret(name.strip())
        and not _is_no_secret(name, value)
        and not _is_reference(value.strip("\"'"))
    )
    return found and not value.startswith(MASK)


def _unless_harmless(match: re.Match[str]) -> str:
    """Return a text in Base64, hidden if the decoded text has a secret."""
    inside = secret_forms.decoded(match[0])
    return MASK if inside is None or _in_part(inside) != inside else match[0]


def config_of(config: Mapping[str, Any], passwords: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a connector's or task's configuration in printable form."""
    return {n: v if v is None else value_of(n, str(v), passwords) for n, v in config.items()}


def _of_json(value: str) -> str:
    """Return a value that is itself JSON, masked by the names in it."""
    try:
        data = read_json(value)
        hidden = _of_data(data)
    except (ValueError, RecursionError):
        return masked(value)
    return value if hidden == data else json.dumps(hidden, ensure_ascii=False)


def _of_data(data: Any, name: str = "") -> Any:
    if (
        name
        and is_secret(name)
        and not (isinstance(data, dict | list) and name.lower().endswith("auth"))
    ):
        return _hidden(data, name)
    if isinstance(data, dict):
        named = any(
            key.lower() in secret_forms.NAMES and isinstance(v, str) and is_secret(v)
            for key, v in data.items()
        )
        return {
            key: _hidden(v)
            if named and key.lower() in secret_forms.VALUES
            else _of_data(v, str(key))
            for key, v in data.items()
        }
    if isinstance(data, list):
        if data and all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in data
        ):
            return [[key, _of_data(value, key)] for key, value in data]
        return [_of_data(item, name) for item in data]
    return value_of(name, data) if isinstance(data, str) else data


def _hidden(data: Any, name: str = "") -> Any:
    """Return ``data`` with all texts and numbers hidden; references and booleans are kept."""
    if isinstance(data, dict):
        return {key: _hidden(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_hidden(item) for item in data]
    if isinstance(data, str):
        return data if _is_reference(data) or _is_no_secret(name, data) else MASK
    return data if data is None or isinstance(data, bool) else MASK


# ------------------------------------------------------------------------------- what has been seen


class SeenSecrets:
    """The secrets that this process has read."""

    def __init__(self) -> None:
        self._by_beginning: dict[str, set[str]] = {}
        self._waiting: list[tuple[Mapping[str, Any], frozenset[str]]] = []
        self._harmless: set[int] = set()

    def add(self, config: Mapping[str, Any], passwords: frozenset[str]) -> None:
        """Hide the secrets of ``config`` from now on; they are extracted when the first text is
        masked.
        """
        self._waiting.append((config, passwords))

    def possible_in(self, text: str) -> tuple[str, ...]:
        """Return the secrets whose first characters are in ``text``, longest first: a thousand
        connectors have too many secrets for each of them to be searched in each text.
        """
        self._extract()
        if not self._by_beginning:
            return ()
        begins = {text[n : n + SHORTEST_SEEN] for n in range(len(text) - SHORTEST_SEEN + 1)}
        found = begins & self._by_beginning.keys()
        return _longest_first(each for begin in found for each in self._by_beginning[begin])

    def _extract(self) -> None:
        """Extract the secrets of the configurations that were added."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        found = {
            secret
            for config, passwords in waiting
            if passwords
            for secret in secrets_of(config, passwords)
        }
        for name, value in _pairs([config for config, passwords in waiting if not passwords]):
            if hash((name, value)) in self._harmless:
                continue
            if secrets := set(secrets_of({name: value})):
                found |= secrets
            else:
                self._harmless.add(hash((name, value)))
        for secret in found:
            self._by_beginning.setdefault(secret[:SHORTEST_SEEN], set()).add(secret)


def _pairs(configs: list[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return each name and text once: tasks repeat their connector's properties, and connectors
    each other's.
    """
    try:
        found = set[tuple[str, Any]]().union(*(config.items() for config in configs))
    except TypeError:  # a value that is a list or an object of JSON
        found = {pair for config in configs for pair in config.items() if isinstance(pair[1], str)}
    return {pair for pair in found if isinstance(pair[1], str)}


seen_secrets = SeenSecrets()


def remember(config: Mapping[str, Any], passwords: frozenset[str] = frozenset()) -> None:
    """Hide the secrets of this configuration in all later text from other programs.

    A worker's stack trace may quote a password without a name that marks it.
    """
    seen_secrets.add(config, passwords)


def secrets_of(config: Mapping[str, Any], passwords: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the values that ``config_of`` hides and that are long enough to be searched."""
    for name, value in config.items():
        shown = value_of(name, value, passwords) if isinstance(value, str) else value
        if shown != value:
            for secret in _hidden_in(value, shown):
                if len(secret) >= SHORTEST_SEEN and secret.lower() not in _PLAIN:
                    yield secret


def _hidden_in(value: str, shown: str) -> Iterator[str]:
    """Yield the parts of ``value`` that are masked in ``shown``."""
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
