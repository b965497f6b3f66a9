"""Keys out of a Java keystore: as keytool wrote them, and errors for what it did not write."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox import keystore
from connectctl.ops.sandbox.jars.java import find_java

PASSWORD = "correct-horse"


@pytest.mark.live
def test_what_keytool_made_is_a_key_with_its_certificate(tmp_path: Path) -> None:
    keystore.issue(tmp_path, find_java().path, {"one": True, "two": False}, PASSWORD, "two")
    for name in ("one", "two"):
        # OpenSSL refuses a key that is not the certificate's.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / f"{name}.pem")
        context.load_verify_locations(tmp_path / "ca.pem")
        assert (tmp_path / f"{name}.pem").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.pem", "one.pem", "two.p12", "two.pem"]


def test_what_is_no_java_keystore_is_told_as_such() -> None:
    with pytest.raises(ConnectctlError, match="not in JKS format"):
        keystore.read(b"\x30\x82" + bytes(30), PASSWORD)


def test_a_java_without_keytool_is_told_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "java").touch()
    with pytest.raises(ConnectctlError, match="Install a complete Java"):
        keystore.issue(tmp_path, str(tmp_path / "java"), {"one": True}, PASSWORD, "one")
