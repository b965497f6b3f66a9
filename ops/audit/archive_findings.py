"""Findings of an audit of an archive: violations, and reasons why it proves nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.audit import findings as rules
from connectctl.ops.audit.archive import ArchiveAudit, ArchivePartition, overlaps
from connectctl.ops.audit.verdict import worst_first
from connectctl.ops.core.finding import Finding, counted, some_of
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile

NAMED = 10
"""The number of files or partitions that a finding names."""


def findings_of_archive(audit: ArchiveAudit) -> tuple[Finding, ...]:
    """Return the findings, the worst first."""
    return worst_first([*_of_files(audit), *_of_offsets(audit), *_of_the_group(audit)])


def _of_files(audit: ArchiveAudit) -> Iterator[Finding]:
    files, manifest = audit.files, audit.manifest
    if missing := [each.name for each in files if each.name not in audit.sizes]:
        message = (
            f"{len(missing):,} of {len(files):,} files are not in {audit.directory}: "
            f"{some_of(missing, NAMED)}."
        )
        yield rules.FILE_MISSING.found(
            manifest, message, "Check --archive, or restore them from a backup."
        )
    if differs := [
        difference
        for each in files
        if each.name in audit.sizes and (difference := _difference(audit, each))
    ]:
        message = (
            f"{len(differs):,} of {len(files):,} files differ from the manifest: "
            f"{some_of(differs, NAMED)}."
        )
        yield rules.FILE_DIFFERS.found(manifest, message, "Restore them from a backup.")
    twice = [f"{a.name} and {b.name}" for a, b in overlaps(files)]
    twice += [
        each.name
        for each in files
        if (has := audit.contents.get(each.name)) and has.own and has.offsets < has.rows
    ]
    if twice:
        hint = "Delete one of two overlapping files from the manifest topic."
        yield rules.ARCHIVED_TWICE.found(
            manifest, f"Offsets are archived twice: {some_of(twice, NAMED)}.", hint
        )
    count, size = audit.orphans
    if count:
        message = f"{counted(count, 'file')} of {size:,} bytes in {audit.directory}"
        hint = "Remove them while no task archives: connectctl run JOB --sweep"
        yield rules.ORPHANS.found(
            manifest, f"{message} {'is' if count == 1 else 'are'} not named.", hint
        )


def _difference(audit: ArchiveAudit, file: ArchivedFile) -> str | None:
    has, size = audit.contents.get(file.name), audit.sizes[file.name]
    if size != file.bytes:
        return f"{file.name} has {size:,} bytes instead of {file.bytes:,}"
    if has is None:
        return f"{file.name} has no rows that can be read, instead of {file.rows:,}"
    if not has.own:
        return f"{file.name} has rows of other partitions than {file.topic_partition}"
    if has.rows != file.rows:
        return f"{file.name} has {has.rows:,} rows instead of {file.rows:,}"
    if (has.first, has.last) != (file.first, file.last):
        return f"{file.name} has offsets {has.first} to {has.last}"
    return None


def _of_offsets(audit: ArchiveAudit) -> Iterator[Finding]:
    for partition, lost in sorted(audit.missing.items()):
        where = (
            f"offset {lost.first}" if lost.records == 1 else f"offsets {lost.first} to {lost.last}"
        )
        message = (
            f"{counted(lost.records, 'record')} below the committed offset of {audit.group} "
            f"are in no file: {where}."
        )
        yield rules.NOT_ARCHIVED.found(
            str(partition), message, "Check them in the topic before retention removes them."
        )
    if unknown := [
        (each, n) for each in audit.partitions if (n := each.unprovable(audit.contents))
    ]:
        names = [f"{each.topic_partition} {n:,}" for each, n in unknown]
        number, named = sum(n for _, n in unknown), some_of(names, NAMED)
        message = f"In no file, and no longer in the input: {counted(number, 'offset')}: {named}."
        yield rules.NOT_PROVABLE.found(audit.manifest, message)


def _of_the_group(audit: ArchiveAudit) -> Iterator[Finding]:
    group, partitions = audit.group, audit.partitions
    if not audit.files and not any(each.committed for each in partitions):
        yield rules.NOTHING.found(
            audit.manifest, "It names no file: nothing to verify.", "Check --manifest."
        )
        return
    ahead = [each for each in partitions if each.files and _is_ahead(each)]
    if ahead:
        names = [
            f"{each.topic_partition} to {each.files[-1].last}, committed {each.later}"
            for each in ahead
        ]
        yield rules.ARCHIVED_AHEAD.found(
            group, f"The archive is ahead of {group}: {some_of(names, NAMED)}."
        )
    reasons: dict[str, list[str]] = {}
    for each in partitions:
        if each.unknown:
            reasons.setdefault(each.unknown, []).append(str(each.topic_partition))
    for why, names in reasons.items():
        message = (
            f"Unknown which offsets of {some_of(names, NAMED)} the group {group} has "
            f"archived: {why}."
        )
        yield rules.GROUP_UNKNOWN.found(group, message, "Audit again, with a longer --patience.")
    without = [
        str(each.topic_partition)
        for each in partitions
        if each.files and each.committed is None and not each.unknown
    ]
    if without:
        message = f"{group} has committed no offset of {some_of(without, NAMED)}."
        yield rules.NOTHING_COMMITTED.found(group, message, "Check --group.")


def _is_ahead(each: ArchivePartition) -> bool:
    return not each.unknown and each.later is not None and each.files[-1].last >= each.later
