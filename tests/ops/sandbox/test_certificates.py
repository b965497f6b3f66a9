"""Certificates of a secured sandbox, as OpenSSL takes them and as Jetty's keystore has them."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import certificates
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

PASSWORD = "correct-horse"


def test_every_name_has_a_key_with_its_certificate(tmp_path: Path) -> None:
    certificates.issue(tmp_path, {"one": True, "two": False}, PASSWORD, "two")
    for name in ("one", "two"):
        # OpenSSL refuses a key that is not the certificate's.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / f"{name}.pem")
        context.load_verify_locations(tmp_path / "ca.pem")
        assert (tmp_path / f"{name}.pem").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ca.pem",
        "one.pem",
        "two.p12",
        "two.pem",
    ]


def test_the_authority_signed_the_key_in_the_keystore_of_the_rest_server(tmp_path: Path) -> None:
    certificates.issue(tmp_path, {"one": True}, PASSWORD, "one")
    assert (tmp_path / "one.p12").stat().st_mode & 0o777 == 0o600
    key, own, (authority,) = pkcs12.load_key_and_certificates(
        (tmp_path / "one.p12").read_bytes(), PASSWORD.encode()
    )
    assert key is not None
    assert own is not None
    own.verify_directly_issued_by(authority)
    assert own.subject.rfc4514_string() == "CN=one"
    here = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert here.get_values_for_type(x509.DNSName) == ["localhost"]
    assert (tmp_path / "ca.pem").read_bytes() == authority.public_bytes(Encoding.PEM)


def test_without_cryptography_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(ConnectctlError, match=r"pip install 'connectctl\[spark\]'"):
        certificates.issue(tmp_path, {"one": True}, PASSWORD, "one")
