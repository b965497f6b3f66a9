"""Texts of ``.proto`` files, compiled by the protoc of grpcio-tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc_tools
from connectctl.ops.clients.registry.known_protos import KNOWN
from connectctl.ops.task_runtime.spi.schema import DataError
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.type import date_pb2

_PATIENCE = 60.0
_KEPT = 1000
_MAIN, _OUT, _KNOWN = "connectctl.schema.proto", "connectctl.out", "connectctl.known"
_META = 'import "confluent/meta.proto";'


def compiled(text: str, references: Mapping[str, str]) -> FileDescriptor:
    """Return the file of ``text``, which a process compiles once. ``references`` are the files that
    it imports besides those of Google and Confluent, by their names. Raises ``DataError`` with
    protoc's message.
    """
    return _compiled(text, tuple(references.items()))


@lru_cache(maxsize=_KEPT)
def _compiled(text: str, references: tuple[tuple[str, str], ...]) -> FileDescriptor:
    with TemporaryDirectory(prefix="connectctl-") as name:
        directory = Path(name).resolve()
        for file, content in (*references, (_MAIN, text)):
            path = (directory / file).resolve()
            if directory not in path.parents:
                raise DataError(f"The name of the reference {file} leads out of its directory")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_complete(content), encoding="utf-8")
        known = FileDescriptorSet()
        for each in KNOWN:
            known.file.add().ParseFromString(each)
        (directory / _KNOWN).write_bytes(known.SerializeToString())
        _protoc(directory)
        pool = DescriptorPool()
        for proto in FileDescriptorSet.FromString((directory / _OUT).read_bytes()).file:
            pool.AddSerializedFile(proto.SerializeToString())
    return pool.FindFileByName(_MAIN)


def _complete(text: str) -> str:
    """Return a text of Confluent's converter, which uses options that it does not import, with the
    import.
    """
    return f"{text}\n{_META}\n" if "(confluent." in text and _META not in text else text


def _protoc(directory: Path) -> None:
    own = Path(grpc_tools.__file__).parent / "_proto"
    others = Path(date_pb2.__file__).parents[2]
    command = [sys.executable, "-P", "-m", "grpc_tools.protoc"]
    options = [*(f"-I{each}" for each in (directory, own, others)), "--include_imports"]
    sets = [f"--descriptor_set_in={directory / _KNOWN}", f"--descriptor_set_out={directory / _OUT}"]
    try:
        subprocess.run(
            [*command, *options, *sets, _MAIN],
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
    except subprocess.CalledProcessError as e:
        raise DataError("protoc refuses the schema", why=" ".join(e.stderr.split())[:300]) from e
    except (OSError, subprocess.TimeoutExpired) as e:
        raise DataError("protoc of grpcio-tools did not run", why=str(e)) from e


def messages_of(file: FileDescriptor | Descriptor) -> list[Descriptor]:
    """Return the messages of a file, or in a message, by their index; entries of maps have none."""
    if isinstance(file, FileDescriptor):
        return list(file.message_types_by_name.values())
    return [each for each in file.nested_types if not each.GetOptions().map_entry]
