"""Certificates of a secured sandbox, made by the ``keytool`` of its Java, as the PEM files that all clients read.

keytool signs, but writes no private key as PEM, and Python's own library reads none of Java's keystores. So the keys are
taken out of a JKS keystore, whose form is simple: big-endian lengths, and keys hidden under a SHA-1 key stream
(``sun.security.provider.JavaKeyStore`` and ``KeyProtector``). That store exists while this runs and no longer.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import private

AUTHORITY = "ca"
DAYS = 365
_PASSWORD = "KEYSTORE_PASSWORD"
_PATIENCE = 120.0
_MAGIC, _PRIVATE_KEY = 0xFEEDFEED, 1
_SHA1 = 20
_LOCAL = "SAN=ip:127.0.0.1,dns:localhost"


@dataclass(frozen=True, slots=True)
class Entry:
    """A private key (PKCS #8) and its certificates, its own first, all in DER."""

    key: bytes
    chain: tuple[bytes, ...]

    def pem(self) -> str:
        """Key and certificates, in the order in which Kafka's PEM keystore and OpenSSL want them."""
        return _pem("PRIVATE KEY", self.key) + "".join(_pem("CERTIFICATE", each) for each in self.chain)


def issue(directory: Path, java: str, names: Mapping[str, bool], password: str, stored: str) -> None:
    """Write an authority's certificate as ``ca.pem``, and ``NAME.pem`` with key and certificate of each of ``names``.

    The subject is ``CN=NAME``. True says that a server of this machine shows the certificate. The one called ``stored``
    is written as ``NAME.p12`` under ``password`` as well, for Jetty, which reads no PEM. Raises ConnectctlError.
    """
    with tempfile.TemporaryDirectory(dir=directory) as place:
        store = Path(place) / "keys.jks"
        make = _Keytool(java, store, password).make
        make(AUTHORITY, "-ext", "bc:c", "-ext", "ku=keyCertSign")
        for name, serves in names.items():
            signed = ("-signer", AUTHORITY, "-signerkeypass:env", _PASSWORD)
            make(name, *signed, *(("-ext", _LOCAL) if serves else ()))
        entries = read(store.read_bytes(), password)
        _Keytool(java, store, password).copy(stored, Path(place) / "one.p12")
        (directory / f"{stored}.p12").touch(mode=0o600)
        (directory / f"{stored}.p12").write_bytes((Path(place) / "one.p12").read_bytes())
    private.write(directory / f"{AUTHORITY}.pem", _pem("CERTIFICATE", entries[AUTHORITY].chain[0]))
    for name in names:
        private.write(directory / f"{name}.pem", entries[name].pem())


def read(data: bytes, password: str) -> dict[str, Entry]:
    """The private keys of a JKS keystore, by alias. Raises ConnectctlError for another format or password."""
    cursor = _Cursor(data)
    magic, version, count = cursor.numbers(">III")
    if magic != _MAGIC or version != 2:
        raise ConnectctlError("keytool wrote a keystore that is not in JKS format", code="no-certificates")
    found = {}
    for _ in range(count):
        (tag,) = cursor.numbers(">I")
        alias = cursor.text()
        cursor.numbers(">q")  # when it was made
        key = _revealed(_octets(cursor.block()), password) if tag == _PRIVATE_KEY else b""
        chain = cursor.numbers(">I")[0] if tag == _PRIVATE_KEY else 1
        found[alias] = Entry(key, tuple(cursor.certificate() for _ in range(chain)))
    return found


@dataclass(frozen=True, slots=True)
class _Keytool:
    """The program beside ``java``, on one keystore. It gets the password by its environment, which only we may read."""

    java: str
    store: Path
    password: str

    def make(self, alias: str, *more: str) -> None:
        """A key on the curve P-256 with its certificate."""
        given = [
            "-keystore",
            str(self.store),
            "-storetype",
            "JKS",
            "-keypass:env",
            _PASSWORD,
            "-storepass:env",
            _PASSWORD,
        ]
        kind = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", str(DAYS)]
        self._run(["-genkeypair", *given, *kind, "-alias", alias, "-dname", f"CN={alias}", *more])

    def copy(self, alias: str, target: Path) -> None:
        """One key into a PKCS #12 keystore of its own."""
        source = ["-srckeystore", str(self.store), "-srcstorepass:env", _PASSWORD, "-srcalias", alias]
        dest = ["-destkeystore", str(target), "-deststoretype", "PKCS12", "-deststorepass:env", _PASSWORD]
        self._run(["-importkeystore", "-noprompt", *source, *dest])

    def _run(self, arguments: list[str]) -> None:
        command = [str(Path(self.java).resolve().with_name("keytool")), "-J-XX:TieredStopAtLevel=1", *arguments]
        known = os.environ | {_PASSWORD: self.password}
        try:
            run = subprocess.run(command, env=known, capture_output=True, text=True, timeout=_PATIENCE, check=False)
            why = "" if run.returncode == 0 else (run.stdout + run.stderr).strip().partition("\n")[0]
        except (OSError, subprocess.TimeoutExpired) as e:
            why = str(e)
        if why:
            hint = "Install a complete Java 17 or newer: keytool is part of it."
            raise ConnectctlError("keytool made no certificate", why=why, next_step=hint, code="no-certificates")


def _revealed(protected: bytes, password: str) -> bytes:
    """The key under a key stream that begins with a salt and goes on with SHA-1(password + last 20 bytes)."""
    salt, hidden, check = protected[:_SHA1], protected[_SHA1:-_SHA1], protected[-_SHA1:]
    secret = password.encode("utf-16-be")

    def stream() -> Iterator[int]:
        last = salt
        while True:
            last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
            yield from last

    key = bytes(byte ^ mask for byte, mask in zip(hidden, stream(), strict=False))
    if hashlib.sha1(secret + key, usedforsecurity=False).digest() != check:
        raise ConnectctlError("The keystore has another password", code="no-certificates")
    return key


def _octets(info: bytes) -> bytes:
    """The encrypted octets of an EncryptedPrivateKeyInfo (RFC 5958 §3): the second element of a sequence."""
    _, body, _ = _element(info)
    _, _, rest = _element(body)
    return _element(rest)[1]


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Tag, content and what follows of the first DER element."""
    length, at = der[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(der[2:at])
    return der[0], der[at : at + length], der[at + length :]


def _pem(label: str, der: bytes) -> str:
    lines = textwrap.fill(base64.b64encode(der).decode(), 64)
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"


class _Cursor:
    """A place in the bytes of a keystore."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def block(self, width: str = ">I") -> bytes:
        (length,) = self.numbers(width)
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str:
        return self.block(">H").decode()

    def certificate(self) -> bytes:
        self.text()  # its type, X.509
        return self.block()
