"""Certificates of a secured sandbox: an authority of its own and keys that it signed, as the PEM
files all clients read.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox.ports import LOOPBACK

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

AUTHORITY = "ca"
DAYS = 365
_SKEW = datetime.timedelta(hours=1)
"""The maximum delay of a clock that verifies a new certificate."""


def issue(directory: Path, names: Mapping[str, bool], password: str, stored: str) -> None:
    """Write an authority's certificate as ``ca.pem``, and for each of ``names`` its key and
    certificates as ``NAME.pem``.

    The subject is ``CN=NAME``. True means that a server of this machine uses the certificate. The
    one of ``stored`` is also written as ``NAME.p12`` under ``password``, for Jetty, which reads no
    PEM. Raises ConnectctlError.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError as e:
        hint = "Run: pip install 'connectctl[spark]'."
        raise ConnectctlError(
            "A secured sandbox needs cryptography, which is not installed", next_step=hint
        ) from e

    def new_key() -> EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    def pem(certificate: Certificate) -> str:
        return certificate.public_bytes(Encoding.PEM).decode()

    signer = new_key()
    authority = _signed(AUTHORITY, signer, signer, serves=False)
    whole_file.write(directory / f"{AUTHORITY}.pem", pem(authority))
    for name, serves in names.items():
        key = new_key()
        chain = _signed(name, key, signer, serves=serves)
        # Key first, then its certificate and the authority's: the order that Kafka's PEM keystore
        # and OpenSSL want.
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        whole_file.write(directory / f"{name}.pem", text + pem(chain) + pem(authority))
        if name == stored:
            hidden = BestAvailableEncryption(password.encode())
            packed = pkcs12.serialize_key_and_certificates(
                name.encode(), key, chain, [authority], hidden
            )
            whole_file.write(directory / f"{name}.p12", packed)


def _signed(
    name: str, key: EllipticCurvePrivateKey, signer: EllipticCurvePrivateKey, *, serves: bool
) -> Certificate:
    """Return a certificate of ``key``; that of the authority where it is the ``signer`` itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    def called(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])

    now = datetime.datetime.now(datetime.UTC)
    signs = key is signer
    builder = (
        x509.CertificateBuilder(
            called(AUTHORITY), called(name), key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if serves:
        hosts = [x509.IPAddress(ipaddress.ip_address(LOOPBACK)), x509.DNSName("localhost")]
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    return builder.sign(signer, SHA256())
