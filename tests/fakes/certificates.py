"""Certificates for tests, made without a program that might not be installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


@dataclass(frozen=True)
class Certificates:
    """PEM files: an authority, a certificate of it for 127.0.0.1, its key, and both in one as Kafka
    wants them.
    """

    authority: str
    certificate: str
    key: str
    keystore: str


def certificates(place: Path) -> Certificates:
    """An authority of its own and a certificate for this machine, in ``place``."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = Certificates(
        *(str(place / name) for name in ("ca.pem", "cert.pem", "key.pem", "keystore.pem"))
    )
    authority.cert_pem.write_to_path(files.authority)
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    # Kafka reads PKCS #8 keys and no others.
    loaded = load_pem_private_key(issued.private_key_pem.bytes(), None)
    key = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(files.certificate).write_bytes(chain)
    Path(files.key).write_bytes(key)
    Path(files.keystore).write_bytes(key + chain)
    return files
