"""Replaces a file as a whole or not at all, and keeps its earlier content."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from connectctl.ops.clients.protocols import ConfiguredValue, WorkerDriver
from connectctl.ops.config import java_properties, whole_file
from connectctl.ops.core.errors import ConnectctlError

_NEW = ".connectctl-new"
_BACKUP = ".connectctl-"


def problem_with(file: Path) -> str | None:
    """Return why ``file`` cannot be replaced by one with the same owner, else None. Changes
    nothing.
    """
    real = _real(file)
    try:
        status = real.stat()
    except FileNotFoundError:
        return f"file not found: {file}" + (f" (a link to {real})" if file.is_symlink() else "")
    except OSError as e:
        return f"{file}: {e.strerror}"
    if real.is_dir():
        return f"{file} is a directory"
    if not real.is_file():
        return f"{file} is not a regular file"
    if not os.access(real, os.R_OK):
        return f"{file} cannot be read"
    if not os.access(real, os.W_OK):
        return f"{file} cannot be written"
    if not os.access(real.parent, os.W_OK | os.X_OK):
        return f"cannot replace {file.name}: the directory {real.parent} is not writable"
    if real.is_mount():
        return f"{file} is a mount point, and cannot be replaced"
    if os.geteuid() not in (0, status.st_uid):
        return f"{file} belongs to user {status.st_uid}; replacing it would change its owner"
    try:
        java_properties.read(read(file))
    except java_properties.Malformed as e:
        return f"{file}: {e}, and no worker starts with it"
    return None


def read(file: Path) -> str:
    """Return the file as text, any bytes of it. Raises ``ConnectctlError``."""
    with _translated(f"{file} cannot be read"):
        return _real(file).read_bytes().decode(java_properties.ENCODING)


def set_property(file: Path, name: str, value: str) -> bool:
    """Set a property in place, and keep all others; return whether the file was changed. Raises
    ``ConnectctlError``.

    Readers see the old file or the new one, also if the machine stops in between.
    """
    before = read(file)
    try:
        after = java_properties.with_value(before, name, value)
    except ValueError as e:
        raise ConnectctlError(f"{file} cannot be edited", why=str(e)) from e
    if after == before:
        return False
    _replace(
        _real(file), before.encode(java_properties.ENCODING), after.encode(java_properties.ENCODING)
    )
    return True


def back_up(file: Path) -> Path:
    """Copy the file, with owner and mode, to a new one beside it, named after the time. Raises
    ``ConnectctlError``.
    """
    real = _real(file)
    stem = f"{real}{_BACKUP}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    with _translated(f"{file} cannot be backed up"):
        content = real.read_bytes()
        number = 1
        while True:
            copy = Path(stem if number == 1 else f"{stem}-{number}")
            with suppress(FileExistsError):
                _write_new(copy, content, like=real)
                return copy
            number += 1


def _replace(real: Path, before: bytes, after: bytes) -> None:
    new = real.with_name(real.name + _NEW)
    with _translated(f"{real} cannot be replaced"):
        # Left by a run that was killed here.
        new.unlink(missing_ok=True)
        try:
            _write_new(new, after, like=real)
            if real.read_bytes() != before:
                raise ConnectctlError(
                    f"{real} was changed by another process meanwhile", next_step="Try again."
                )
            new.rename(real)
        finally:
            new.unlink(missing_ok=True)
        whole_file.sync(real.parent)


def _write_new(path: Path, content: bytes, *, like: Path) -> None:
    """Write a file that does not exist yet, on disk when this returns, with owner, mode and
    attributes of ``like``.
    """
    status = like.stat()
    # Readable only here until it has the owner and the mode of the other: such files hold
    # passwords.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if (os.fstat(file.fileno()).st_uid, os.fstat(file.fileno()).st_gid) != (
                status.st_uid,
                status.st_gid,
            ):
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            shutil.copystat(like, path)
            os.utime(file.fileno())
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _real(file: Path) -> Path:
    return Path(os.path.realpath(file))


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise ConnectctlError(what, why=e.strerror or str(e), code="file-not-writable") from e


class FileDriver(WorkerDriver):
    """A driver that changes a properties file of each worker."""

    def _file(self, worker: str) -> Path:
        raise NotImplementedError

    def check(self, worker: str) -> str | None:
        try:
            return problem_with(self._file(worker))
        except ConnectctlError as e:
            return str(e)

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        file = self._file(worker)
        try:
            return ConfiguredValue(java_properties.value_of(read(file), name), f"file {file}")
        except java_properties.Malformed as e:
            raise ConnectctlError(f"{file} cannot be read as properties", why=str(e)) from e
