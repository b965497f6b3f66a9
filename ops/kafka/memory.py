"""The available memory, and the error of a topic whose records need more."""

from __future__ import annotations

from pathlib import Path

from connectctl.ops.core.errors import ConnectctlError

READ_BYTES = 500
"""Bytes that a key takes with its record once it is read: keys and values of some 60 bytes each."""
WORK_BYTES = 1_500
"""Bytes that a key takes in addition until it is compared, decided and printed: most for
``offsets show``.
"""
CODE = "memory"
"""The code of the error."""
_MEGABYTE = 1 << 20
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def available() -> int | None:
    """Return the bytes that are available to this process; None if neither the machine nor its
    container reports them.
    """
    found = [each for each in (_of_machine(), _of_container()) if each is not None]
    return min(found, default=None)


def holds(keys: int) -> bool:
    """Return ``True`` unless so many ``keys`` are known to need more than the available memory."""
    free = available()
    return free is None or keys * (READ_BYTES + WORK_BYTES) <= free


def check(keys: int, source: str, work: int = WORK_BYTES) -> None:
    """Raise ``ConnectctlError`` if memory does not hold the ``work`` on each of ``keys``, read of
    ``source`` up to now.
    """
    free = available()
    if free is None or keys * work <= free:
        return
    raise ConnectctlError(
        f"Memory does not hold {source}",
        why=f"it holds {keys:,} keys with {free / _MEGABYTE:,.0f} MB left, and there are more",
        next_step="Name connectors: only their keys are held. Or add --engine spark, which "
        "backup, diff, merge and restore take: Spark needs 2.5 GB, Java, and pip "
        "install 'connectctl[spark]'.",
        code=CODE,
    )


def _of_machine() -> int | None:
    for line in _lines(_MEMINFO):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_container() -> int | None:
    """Return what the limit of the control group leaves; pages of files, which the kernel can drop,
    are not in use.
    """
    limit, used = (
        next(iter(_lines(_CGROUP / name)), "") for name in ("memory.max", "memory.current")
    )
    if not limit.isdecimal() or not used.isdecimal():
        return None
    pairs = (line.split() for line in _lines(_CGROUP / "memory.stat"))
    files = sum(int(pair[1]) for pair in pairs if pair[0] in ("active_file", "inactive_file"))
    return max(0, int(limit) - int(used) + files)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
