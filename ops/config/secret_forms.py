"""Forms by which a text is a secret or contains one, whatever its property's name is. Only
``masking`` uses it.

The first group of a pattern, if it has one, is the part that stays visible.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache

NAMES = frozenset(
    {
        "name",
        "key",
        "header",
        "headername",
        "field",
        "property",
        "parameter",
        "param",
        "id",
        "option",
        "k",
    }
)
VALUES = frozenset({"value", "values", "val", "content", "data", "default", "text", "v"})
"""Members of JSON objects that have a name and a value apart:
``{"name": "password", "value": …}``.
"""

SIGNED = re.compile(
    r"x-[a-z]{2,4}-(?:signature|credential|security-token)|(?:aws|google|oss)access(?:key)?id|signature|sig|hmac|"
    r"hdne[at]|hdnts|code|key|auth|sas|pass|access|apikey|st?oken",
    re.IGNORECASE,
)
"""Parameters of a URL that grant what its signer may do, and keys that are passed in URLs."""
PAIR = re.compile(r"((?:\A|(?<=[?&;]))([\w.-]{1,80})=)([^&;\s\"']+)")
ENCODED_PAIR = re.compile(
    r"((?:\A|(?<=[?&;=\s])|(?<=%26)|(?<=%3[bBfF]))([\w.-]{1,80})%(?:25)?3[dD])((?:(?!%(?:25)?26|%3[bB]|[&;\s\"']).)+)"
)
CONNECTION_STRING = re.compile(r"(?:[\w .-]{1,60}=[^;\n]*;)+(?:[\w .-]{1,60}=[^;\n]*)?")

_HOST = r"(?://)?[\w.-]+"
_NO_PRINCIPAL = r"(?!(?:User|Group|Role|mailto|xmpp|sip|acct|tel):)"
_KNOWN_TOKENS = (
    r"gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{20,}|A[KS]IA[0-9A-Z]{16}|"
    r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{16,}|[sr]k_(?:live|test)_\w{16,}|sk-[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|"
    r"hv[sb]\.[\w-]{20,}|dapi[0-9a-f]{32}\w*|npm_\w{30,}|pypi-[\w-]{40,}|dop_v1_\w{40,}|shp(?:at|ca|pa|ss)_\w{20,}|"
    r"NRAK-[A-Z0-9]{20,}|AGE-SECRET-KEY-1\w{40,}"
)


_MARKS = (
    *(
        "pass",
        "pwd",
        "pw=",
        "-pw",
        "secret",
        "token",
        "credential",
        "key",
        "jaas",
        "authorization",
        "bearer",
        "basic",
    ),
    *(
        "userinfo",
        "user.info",
        "user_info",
        "user-info",
        "://",
        "hook",
        "/bot",
        "thin:",
        "oci:",
        "oci8:",
        "-u",
        "--user",
        "@",
    ),
    *(
        "cookie",
        "%3d",
        "%253d",
        "sig=",
        "login",
        "mysql",
        "redis-cli",
        "private-lines",
        "configuration",
    ),
    *(
        "sha}",
        "sha1}",
        "sha2",
        "sha5",
        "md5}",
        "crypt}",
        "{pbkdf2",
        "$apr1$",
        "$1$",
        "$2",
        "$5$",
        "$6$",
        "$y$",
        "$argon2",
    ),
    *(
        "$scrypt$",
        "$pbkdf2",
        "eyj",
        "eyai",
        "ewo",
        "ew0k",
        "ls0t",
        "mii",
        "mig",
        "mc4c",
        "mhcc",
        "/u3+",
        "bqia",
    ),
    *(
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat",
        "xox",
        "xapp",
        "akia",
        "asia",
        "aiza",
        "ya29",
        "gocspx",
    ),
    *(
        "sk_live",
        "sk_test",
        "rk_live",
        "rk_test",
        "sk-",
        "sg.",
        "hvs.",
        "hvb.",
        "dapi",
        "npm_",
        "pypi-",
        "dop_",
        "shp",
        "nrak",
    ),
)
"""Every text that a pattern here or in ``masking`` matches has one of these, except pairs and
fields of a .pgpass.
"""
_PASSWORD_FILE = re.compile(r":(?:\d{2,5}|\*):")
_FIRST_PAIR = re.compile(r"[\w.-]{1,80}=")


def is_suspicious(text: str) -> bool:
    """Return whether a text may contain a secret: most texts have no mark of one, and skip all
    patterns.
    """
    lower = text.lower()
    if any(mark in lower for mark in _MARKS):
        return True
    if "=" in text and (_FIRST_PAIR.match(text) or "?" in text or "&" in text or ";" in text):
        return True
    return text.count(":") > 3 and _PASSWORD_FILE.search(text) is not None


@cache
def patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of secrets within any text. They are compiled when they are first
    needed.
    """
    i = re.IGNORECASE
    return (
        re.compile(rf"\b(?:{_KNOWN_TOKENS})"),
        # A key in DER, PKCS#12, JKS, or a keytab, in Base64.
        re.compile(
            r"(?<![\w+/])(?:MII[\w+/]{2,4}(?:IBA[DAz]|gEA)|MHcCAQ|MIG[\w+/]{1,2}(?:AgEA|CAQ)|MC4CAQA|MII[\w+/]{3}IBAzCC|/u3\+7Q|"
            r"BQIAAA)[\w+/=]{16,}"
        ),
        # An entry of Oracle's EZConnect, of a .netrc, of a shadow file, of LDAP.
        re.compile(
            r"((?<![\w/.@$#-])[A-Za-z][\w$#]{0,60}/)[^\s/@]{1,200}(?=@(?!sha\d+:)(?://[\w.-]|[\w.-]+:\d|\(DESC))",
            i,
        ),
        # HOST:PORT:DATABASE:USER:PASSWORD, and USER:PASSWORD@HOST:PORT.
        re.compile(
            r"((?<![\w.:*-])(?:[\w.-]+|\*):(?:\d{2,5}|\*):[\w*.-]+:[\w.-]+:)[^\s;:]+(?=[\s;,\"')]|\Z)"
        ),
        re.compile(rf"((?<![^\s=\"'(]){_NO_PRINCIPAL}[\w.%+-]+:)(?!//)[^\s:@/;]+(?=@[\w.-]+:\d)"),
        re.compile(r"(\blogin\s+\S{1,100}\s+password\s+)\S+", i),
        re.compile(r"\$(?:apr1|1|2[aby]|5|6|y|argon2\w+|scrypt|pbkdf2[\w-]*)\$[\w./$=,+-]{8,}"),
        re.compile(r"(\{(?:S?SHA\d*|S?MD5|CRYPT|PBKDF2\w*)\})[\w+/=$.]{8,}", i),
        re.compile(r"(\bcookie\\?[\"']?\s*[:=]\s*)[^\"'\n]+", i),
        re.compile(r"(\bmysql\w*\s(?:[^\n]{0,200}\s)?-p)[^\s\"']+"),
        re.compile(r"(\bredis-cli\s(?:[^\n]{0,200}\s)?-a\s+)\S+"),
        re.compile(r"((?<!\S)-pw\s+)\S+"),
        re.compile(r"(\bPrivate-Lines: \d+\s).+?(?=Private-MAC|\Z)", re.DOTALL),
    )


@cache
def whole_values() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of secrets that are a whole value, or a line of one, compiled when first
    needed.
    """
    m = re.MULTILINE
    return (
        # HOST:PORT:DATABASE:USER:PASSWORD of a .pgpass.
        re.compile(r"^([^:\s#]+:(?:\d{2,5}|\*):[^:\s]+:[^:\s]+:)(?:[^:\\\n]|\\.)+$", m),
        re.compile(
            rf"\A([A-Za-z][\w$#.-]{{0,60}}/)(?!/)[^\s/@]+(?=@(?!sha\d+:){_HOST}(?::\d+)?(?:[/:][\w.$#/:-]+)?\s*\Z)"
        ),
        re.compile(r"\A([A-Za-z][\w$#.-]{0,60}/)\"[^\"\n]+\"(?=@)"),
        re.compile(
            rf"\A({_NO_PRINCIPAL}[^\s:@/,;]+:)(?!//)[^\s:@]+(?=@[\w.-]+(?::\d+)?(?:/\S*)?\s*\Z)"
        ),
    )


@cache
def base64_text() -> re.Pattern[str]:
    """Return the pattern of a PEM file, a JSON document, or properties in Base64; see
    ``decoded``.
    """
    return re.compile(
        r"(?<![\w+/.-])(?:LS0tLS1CRUdJTi|ewog|ewoJ|ew0K|eyAi|eyJ)[\w+/=-]{24,}(?![\w.])"
    )


def decoded(text: str) -> str | None:
    """Return the text that ``text`` encodes in Base64, None if it cannot be decoded."""
    try:
        raw = base64.b64decode(
            text.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (-len(text.rstrip("=")) % 4)
        )
        return raw.decode()
    except (binascii.Error, ValueError):
        return None
