"""A generation of tasks that starts while Spark already reads the frame; its tasks ask the driver
for it before they write.

To start one is waiting for Kafka, and to read or shuffle a frame is work for Spark: neither needs
the other. Nothing is initialised, read or written by a task before its generation has started.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.attempt.control_channel import (
    DriverAddress,
    QuestionListener,
    ask,
    driver_address,
)
from connectctl.ops.task_runtime.job.config_topic_records import Generation

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
    from pyspark.sql import SparkSession

PATIENCE = 5.0
"""Seconds for which the driver keeps a task that asks waiting, before it answers that there is no
generation yet.
"""
ANSWER_TIMEOUT = 30.0
"""Seconds after which a task takes a driver that has not answered for lost."""
T = TypeVar("T")
Reached = Callable[[], Mapping[str, KnownEnds]]
"""Returns the known ends of the offsets topics."""


class GenerationStart(QuestionListener):
    """The driver's end: ``start`` runs on a thread of its own. Where it raises, ``cancel`` is
    called.
    """

    def __init__(
        self,
        host: str,
        bind: str | None,
        start: Callable[[], Generation],
        reached: Reached,
        cancel: Callable[[], None],
    ):
        self._start, self._reached, self._cancel = start, reached, cancel
        self._found: Future[Generation] = Future()
        super().__init__(host, bind, lambda _: self._status())
        threading.Thread(target=self._run, daemon=True).start()

    def during(self, run: Callable[[], T]) -> T:
        """Return the result of ``run``, during which the generation starts. An error of ``start``
        is raised before one of ``run``.
        """
        try:
            done = run()
        except Exception:
            self._found.result()
            raise
        self._found.result()
        return done

    def _run(self) -> None:
        try:
            self._found.set_result(self._start())
        except BaseException as e:  # noqa: BLE001  # it is raised on the thread that waits for it
            self._found.set_exception(e)
            with suppress(Exception):  # whatever ended Spark's jobs already
                self._cancel()

    def _status(self) -> dict[str, Any]:
        try:
            generation = self._found.result(PATIENCE)
        except NotYet:
            # A start that timed out itself is over.
            return {"failed": True} if self._found.done() else {}
        except BaseException:  # noqa: BLE001  # the driver raises it
            return {"failed": True}
        reached = {which: asdict(ends) for which, ends in self._reached().items()}
        return {"generation": asdict(generation), "reached": reached}


def start_of(
    spark: SparkSession, start: Callable[[], Generation], reached: Reached
) -> tuple[GenerationStart, Callable[[Callable[[], T]], T]]:
    """Begin ``start``. Return it, and a function that runs a Spark action meanwhile, whose jobs are
    cancelled if ``start`` fails.
    """
    context = spark.sparkContext
    tag = f"connectctl-{secrets.token_hex(8)}"
    started = GenerationStart(
        *driver_address(spark), start, reached, lambda: context.cancelJobsWithTag(tag)
    )

    def run(what: Callable[[], T]) -> T:
        context.addJobTag(tag)
        try:
            return started.during(what)
        finally:
            context.removeJobTag(tag)

    return started, run


def with_generation(spec: TaskSpec, address: DriverAddress) -> TaskSpec:
    """Return ``spec`` with the generation, which is requested from the driver until it has started."""
    answer: dict[str, Any] = {}
    while not answer:
        try:
            answer = ask(address, {}, answer=ANSWER_TIMEOUT)
        except (OSError, ValueError) as e:
            raise ConnectctlError("Lost connection to the Spark driver", why=str(e)) from e
    if "generation" not in answer:
        raise ConnectctlError("The tasks were not started", why="see the error of the driver")
    reached = {
        which: KnownEnds(ends["id"], tuple(ends["ends"]))
        for which, ends in answer["reached"].items()
    }
    return replace(spec, generation=Generation(**answer["generation"]), reached=reached)
