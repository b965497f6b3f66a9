"""Next steps that commands in memory print, each run in a copy of the situation that printed it.

Every test without a real cluster is such a situation. A copy of it is a child process with the
fakes, patches and environment of the test, and with copies of its files and its journal. A next
step that does not work fails the test. ``nextsteps.txt`` names for each next step the test that
follows it, or why it is not followed: see ``test_next_steps.py``.
"""

from __future__ import annotations

import gc
import json
import os
import re
import select
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from connectctl.cli.main import app, globals_first
from connectctl.ops.config import paths
from typer.main import get_command

TABLE = Path(__file__).with_name("nextsteps.txt")
_TOPICS = ("--config-topic", "--offsets-topic", "--status-topic")
NAMES_A_CLUSTER = frozenset(
    (
        "--context",
        "-c",
        "--config",
        "--bootstrap-servers",
        "--group-id",
        "--rest",
        "--rest-is-group",
        *_TOPICS,
    )
)
"""Global options that a printed command repeats."""
_COMMAND = re.compile(r"connectctl ([a-z-][^\n`;|()\"<]*)")
_ENDS_SENTENCE = re.compile(r"(?<=[.,:?!])\s|\s{2,}|, ")
_PROSE = frozenset(
    re.findall(
        r"\w+",
        "to and or then has have prints names says where in with itself it is are was that the "
        "shows of by as for on once whether first again puts gives before after lists not from if "
        "until which writes removes made Then",
    )
)
"""Words that begin the rest of a sentence."""
_NUMBERS = re.compile(r"\d{8}-\d{6}-\w{4}|\d+")
_ERROR = re.compile(
    r'(?:error: |"message": ")(?:Step \d+ of the run failed: )?(.+?)(?:: |\. |"|$)', re.MULTILINE
)
_CONDITION = re.compile(r"[.;] [A-Z][^.;]+[.;] Then resume: ")
"""Something that the person has to do before the run is resumed."""
PATIENCE = 300.0
"""Seconds that a command in memory may take, on a machine that does much else."""
MOST = 2
"""How often one next step is followed after one command in a file of tests, but in those that the
table names.
"""
PROCESSES = ("sandbox", "demo")
"""Commands that start processes, which a copy must not."""
PLACEHOLDERS = frozenset(
    (
        "CONNECTOR",
        "DIR",
        "FILE",
        "GROUP",
        "HOST:PORT",
        "ID",
        "JOB",
        "NAME",
        "RUN",
        "TOPIC",
        "-",
        "…",
    )
)
"""Words for which a person has to choose a value."""
BROKEN_ON_PURPOSE = ("broken off", "Interrupted", "Killed()")
"""Words of the faults that tests inject: they are still there in a copy."""
EXCUSED = {
    "test_no_secret_leaves_and_the_verdict_is_that_of_the_cluster": "its workers in memory answer errors",
    "test_no_name_leaves_with_redact_names": "its workers in memory answer errors",
    "test_it_writes_three_files_and_says_what_to_do_next": "no cluster is named to run the new job on",
    "test_yes_is_not_enough_for_a_protected_context_where_nobody_can_type_its_name": "nobody is there to type the name",
    "test_a_connector_that_was_changed_meanwhile_is_left_as_it_is": "somebody else changes the connector again",
    "test_where_the_deletion_fails_nobody_takes_the_source_partitions_over": "somebody else changes the connector again",
    "test_a_plan_is_stale_where_its_job_file_has_changed_even_if_it_is_no_job_file_now": "the job file has to be mended",
    "test_what_is_no_plan_is_refused_with_the_reason": "the plan is made up, and no roll is "
    "unfinished",
    "test_a_change_names_earlier_runs_that_did_not_end_and_reads_none_of_their_plans": "the earlier runs are made up",
    "test_an_undo_after_the_sink_went_on_is_refused_with_the_number": "the group's members have to be stopped first",
    "test_an_undo_that_is_answered_late_is_refused_and_the_sink_is_resumed": "the group's members have to be stopped first",
    "test_workers_that_disagree_are_a_finding": "the fakes of this test answer validations alone",
    "test_no_roll_begins_on_a_view_that_is_not_whole": "these workers in memory have nothing but "
    "their modes",
    "test_no_roll_goes_on_or_back_on_a_view_that_is_not_whole": "these workers in memory have nothing but their modes",
    "test_who_says_how_long_a_person_may_take_needs_no_terminal": "who resumes says anew how long a person may take",
    "test_a_change_that_fails_on_the_way_is_part_done": "the file stays as it is in the copy",
    "test_no_command_makes_anything_else_of_a_fault_of_rest": "the fault of its worker lasts",
    "test_older_workers_do_not_create_in_a_state": "the connector has to be created first",
    "test_offsets_beside_a_configuration_are_refused_with_the_way_that_works": "no cluster: the file is the person's",
}
"""Tests whose situation has a condition that a text names, or that is not whole; why."""
FILES = {
    "offsets restore": ("offsets", "backup"),
    "offsets set": ("offsets", "show", "-o", "json"),
    "connectors diff": ("connectors", "show", "-o", "json"),
}
"""What writes the FILE of a command, for the connector that it names."""


@cache
def _root() -> Any:
    return get_command(app)


def command_of(words: Sequence[str]) -> tuple[Any, int]:
    """Return the command that ``words`` begin with, None if there is none, and how many of them
    name it.
    """
    command: Any = _root()
    for number, word in enumerate(words):
        if not hasattr(command, "get_command"):
            return command, number
        found = command.get_command(None, word)
        if found is None and command.name == "run" and word not in _PROSE:
            return command.commands["job"], number
        if found is None:
            return None, number
        command = found
    return (None if hasattr(command, "get_command") else command), len(words)


def without_prose(words: Sequence[str]) -> list[str] | None:
    """Return ``words`` without the rest of the sentence; None if they are a sentence about
    connectctl.
    """
    command, used = command_of(words)
    if command is None:
        return None
    taken, unread = list(words[:used]), list(words[used:])
    options = (*command.params, *_root().params)
    valued = {name for each in options for name in each.opts if not getattr(each, "is_flag", True)}
    room = sum(
        99 if each.nargs < 0 else each.nargs
        for each in command.params
        if each.param_type_name == "argument"
    )
    while unread:
        word = unread.pop(0)
        if word.startswith("-"):
            taken += [word, *([unread.pop(0)] if word in valued and unread else [])]
        elif room == 0 or word in _PROSE:
            break
        else:
            room -= 1
            taken.append(word)
    return taken


def commands_in(text: str) -> Iterator[tuple[list[tuple[str, ...]], list[str]]]:
    """Yield each command that ``text`` names, as words that can be run: the global options before
    it, and the command.
    """
    for match in _COMMAND.finditer(text):
        words = [word.rstrip(".,:?!'") for word in _ENDS_SENTENCE.split(match.group(1))[0].split()]
        first, rest = global_options(words)
        if (found := without_prose(rest)) and not {"--help", "…"} & {*words}:
            yield first, found


def global_options(words: Sequence[str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the global options that ``words`` begin with, each with its value, and the other
    words.
    """
    flags = {name: getattr(each, "is_flag", False) for each in _root().params for name in each.opts}
    found, unread = [], list(words)
    while unread and (name := unread[0].partition("=")[0]) in flags:
        number = 1 if flags[name] or "=" in unread[0] else 2
        found.append(tuple(unread[:number]))
        del unread[:number]
    return found, unread


def table() -> dict[str, str]:
    """Return the test, or the reason, for each next step: its words, with ``X1`` for values."""
    rows = (
        line.split(" => ", 1)
        for line in TABLE.read_text().splitlines()
        if line and not line.startswith("#")
    )
    return dict(rows)


def is_one_of(template: str, words: Sequence[str]) -> bool:
    """Return whether ``words`` are the next step ``template`` with values."""
    return re.fullmatch(re.escape(template).replace("X1", ".+"), " ".join(words)) is not None


def follow(
    words: Sequence[str], real: Any, typed: Sequence[str], given: dict[str, Any], files: Path | None
) -> dict[str, Any]:
    """Return what a copy of this process answers to ``words``: exit code, output and errors.

    ``typed`` are the global options: those that are printed before them, and those of the command
    that printed them which do not name the cluster. The copy collects no garbage of this process: a
    client of librdkafka, destroyed there, would wait for a thread that is not there.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        gc.freeze()
        with os.fdopen(writing, "w") as pipe, tempfile.TemporaryDirectory() as directory:
            json.dump(_answer(words, real, typed, given, files, Path(directory)), pipe)
            pipe.flush()
        os._exit(0)
    os.close(writing)
    said = b""
    while select.select([reading], [], [], PATIENCE)[0] and (part := os.read(reading, 1 << 16)):
        said += part
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    answer: dict[str, Any] = (
        json.loads(said) if said else {"code": None, "err": "no answer in time"}
    )
    return answer


def _answer(
    words: Sequence[str],
    real: Any,
    typed: Sequence[str],
    given: dict[str, Any],
    files: Path | None,
    copy: Path,
) -> dict[str, Any]:
    def run(args: Sequence[str]) -> Any:
        return real(typer.testing.CliRunner(), app, [*map(moved, (*typed, *args))], **given)

    def moved(word: str) -> str:
        return word if files is None else word.replace(str(files), str(copy / "files"))

    try:
        journal, args = copy / "journal", list(words)
        if paths.journal_directory().is_dir():
            shutil.copytree(paths.journal_directory(), journal, symlinks=True, ignore=_of_processes)
        if files is not None:
            shutil.copytree(files, copy / "files", symlinks=True, ignore_dangling_symlinks=True)
        os.chdir(
            copy
            if files is None or not Path.cwd().is_relative_to(files)
            else moved(str(Path.cwd()))
        )
        os.environ |= {name: moved(value) for name, value in os.environ.items()}
        os.environ["CONNECTCTL_JOURNAL"] = str(journal)
        if "FILE" in args and (made := FILES.get(" ".join(args[:2]))):
            subject = args[2 : 4 if args[2] == "--group" else 3]
            (copy / "FILE").write_text(run([*made, *subject]).stdout)
            args[args.index("FILE")] = str(copy / "FILE")
        asks = (
            any("--yes" in each.opts for each in command_of(words)[0].params)
            and "--dry-run" not in args
        )
        asks = asks and (args[:2] != ["run", "status"] or "--remove-members" in args)
        result = run([*args, *(["--yes"] if asks else [])])
        return {"code": result.exit_code, "err": result.stderr}
    except BaseException as e:  # noqa: BLE001  # a copy of the process reports whatever ends it
        return {"code": None, "err": repr(e)}


def _of_processes(directory: str, names: Sequence[str]) -> set[str]:
    """Return what brokers and workers of sandboxes write, which changes while it is copied."""
    here = Path(directory)
    if here.parent.name != "sandbox":
        return set()
    return {name for name in names if name != "security" and (here / name).is_dir()}


def complaint(first: str, answer: dict[str, Any]) -> str | None:
    """Return why the command that gave ``answer`` was no next step after the error ``first``; None
    if it was one.
    """
    code, error = answer["code"], answer["err"]
    if code == 0 or any(words in error for words in BROKEN_ON_PURPOSE):
        return None
    if code is None or code in (2, 4, 70):
        return f"it exits with {code}"
    same = set(_ERROR.findall(first)) & set(_ERROR.findall(error))
    if same and not _CONDITION.search(first):
        return f"it fails for the same reason: {', '.join(same)}"
    return "it does not find what it names" if "not found" in error.lower() else None


class NextSteps:
    """A plugin that follows the next steps of each test in memory."""

    def __init__(self) -> None:
        self.claims: dict[str, list[str]] = {}
        for template, test in table().items() if TABLE.exists() else ():
            self.claims.setdefault(test, []).append(template)
        self.followed: dict[Any, int] = {}
        self.file: Path | None = None
        self.here: list[list[str]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        if "live" in item.path.parts:
            return (yield)
        if item.path != self.file:
            # Which files a process tests before is no matter to what is followed in this one.
            self.file, self.followed = item.path, {}
        real, self.here = typer.testing.CliRunner.invoke, []
        files = getattr(item, "funcargs", {}).get("tmp_path")
        excused = EXCUSED.get(item.name.partition("[")[0])

        def invoke(runner: Any, app: Any, args: Any = None, **given: Any) -> Any:
            result = real(runner, app, args, **given)
            if excused is None and "Usage:" not in result.output and "docs" not in (args or ()):
                self._follow(item.nodeid, list(args or ()), result, real, given, files)
            return result

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(typer.testing.CliRunner, "invoke", invoke)
            outcome = yield
        claimed = self.claims.get(item.nodeid, ())
        if lost := [
            each for each in claimed if not any(is_one_of(each, words) for words in self.here)
        ]:
            pytest.fail(f"It no longer prints what {TABLE.name} says: {', '.join(lost)}")
        return outcome

    def _follow(
        self,
        test: str,
        args: list[str],
        result: Any,
        real: Any,
        given: dict[str, Any],
        files: Path | None,
    ) -> None:
        args = globals_first(args, _root().params)
        begins = next((n for n, word in enumerate(args) if word in _root().list_commands(None)), 0)
        typed, _ = global_options(args[:begins])
        for printed, words in commands_in(f"{result.stdout}\n{result.stderr}"):
            made = "FILE" in words and " ".join(words[:2]) in FILES
            values = {*words, *(word for option in printed for word in option)}
            if {words[0], args[begins]} & {*PROCESSES} or PLACEHOLDERS & values - (
                {"FILE"} if made else set()
            ):
                continue
            key = (
                _NUMBERS.sub("0", " ".join(words)),
                tuple(args[begins : begins + 2]),
                result.exit_code,
            )
            self.followed[key] = self.followed.get(key, 0) + 1
            if self.followed[key] > (MOST if test not in self.claims else 100 * MOST):
                continue
            obj = {name: given[name] for name in ("obj",) if name in given}
            again = [
                each for each in typed if each[0].partition("=")[0] not in NAMES_A_CLUSTER
            ] + printed
            answer = follow(words, real, [word for each in again for word in each], obj, files)
            self.here.append(words)
            why = complaint(result.stderr, answer)
            if why is not None:
                pytest.fail(
                    f"connectctl {' '.join(args)} printed a next step that does not work: "
                    f"connectctl {' '.join(words)}: {why}\n\n{result.stderr}\n{answer['err']}"
                )
