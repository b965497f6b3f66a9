"""An archive in an object store, by S3's own protocol from a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.files import (
    ArchiveDirectory,
    Row,
    file_name,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.reader import sweep
from moto.server import ThreadedMotoServer
from pyarrow import fs

PLACE = TopicPartition("orders", 3)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The query of a URI that leads to the server."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"endpoint_override={host}:{port}&scheme=http"
    server.stop()


@pytest.fixture
def uri(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    # or pyarrow looks for a cloud around this machine
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store, _ = fs.FileSystem.from_uri(f"s3://bucket?{endpoint}&allow_bucket_creation=true")
    store.create_dir("bucket")
    return f"s3://bucket/archive?{endpoint}"


def rows(*offsets: int) -> list[Row]:
    return [(offset, 1_700_000_000_000, "CreateTime", b"k", b"v", []) for offset in offsets]


def test_a_file_in_an_object_store_is_whole_under_its_name_and_an_orphan_is_swept(uri: str) -> None:
    archive = ArchiveDirectory(uri)
    kept = archive.write(file_name(PLACE, 0, 2), PLACE, rows(0, 1, 2))
    orphan = archive.write(file_name(PLACE, 0, 1), PLACE, rows(0, 1))
    store, root = fs.FileSystem.from_uri(uri)
    assert pq.read_table(f"{root}/{kept.name}", filesystem=store).column("offset").to_pylist() == [
        0,
        1,
        2,
    ]
    assert {name for name, _ in ArchiveDirectory(uri).listed()} == {kept.name, orphan.name}
    assert [each.name for each in sweep(uri, [kept], older_than=-60, remove=True)] == [orphan.name]
    assert [name for name, _ in ArchiveDirectory(uri).listed()] == [kept.name]


def test_a_store_that_cannot_be_used_is_one_error(endpoint: str, uri: str) -> None:
    with pytest.raises(ConnectctlError, match=r"Could not write to s3://absent.*Check directory"):
        ArchiveDirectory(f"s3://absent/archive?{endpoint}").write(
            file_name(PLACE, 0, 0), PLACE, rows(0)
        )
