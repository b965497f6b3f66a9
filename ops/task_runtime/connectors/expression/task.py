"""The base of ``Filter``, ``Map`` and ``Route``: named expressions are checked, and applied to
records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.connectors.expression.columns import Row, evaluate
from connectctl.ops.task_runtime.connectors.expression.language import (
    Expression,
    ExpressionError,
    parse,
)
from connectctl.ops.task_runtime.connectors.expression.records import (
    MISSING,
    OF_RECORD,
    SETTINGS,
    RowReader,
    name_of,
)
from connectctl.ops.task_runtime.spi.connector import Setting
from connectctl.ops.task_runtime.spi.transform import Record, Records, Transform, TransformConnector


class ExpressionTask(Transform):
    """Evaluates expressions for records; ``make`` returns what a record becomes by their results."""

    settings: ClassVar[Sequence[Setting]] = SETTINGS
    writes_text: ClassVar[bool] = False
    """Whether results are written to keys and values."""

    def start(self, configs: Mapping[str, str]) -> None:
        self.configs = configs
        self.reader = RowReader(configs, writes_text=self.writes_text)
        self._expressions = {name: parse(text) for name, text in self.expressions(configs)}
        self._names = frozenset[str]().union(*(each.names for each in self._expressions.values()))

    @classmethod
    def expressions(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Return each expression by the name that errors have for it."""
        return iter(())

    @classmethod
    def problems(cls, configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the errors of the configuration, by property."""
        if (missing := configs.get(MISSING, "fail")) not in ("fail", "null"):
            yield MISSING, f"Invalid value {missing} for configuration {MISSING}: use fail or null"
        reader = RowReader(configs)
        if reader.reads_bytes:
            yield (
                "value.converter",
                "Expressions need StringConverter or JsonConverter for keys and values",
            )
        for name, text in cls.expressions(configs):
            if why := _problem(text, reader.has_fields):
                yield name, f"Invalid value {text.strip()} for configuration {name}: {why}"

    def process(self, records: Records) -> list[Record]:
        try:
            return self._processed(records)
        except Exception:
            if self.report is None:
                raise
        made = []
        for record in records:
            try:
                made += self._processed([record])
            except Exception as e:  # noqa: BLE001  # what a converter or an expression raises
                self.report(record, e)
        return made

    def _processed(self, records: Sequence[Record]) -> list[Record]:
        rows = self.reader.rows(records, self._names)
        results = {
            name: self._results(name, each, records, rows)
            for name, each in self._expressions.items()
        }
        made = (
            self.make(record, {n: of[i] for n, of in results.items()})
            for i, record in enumerate(records)
        )
        return [each for each in made if each is not None]

    def make(self, record: Record, results: Mapping[str, Any]) -> Record | None:
        """Return the output for ``record``, by the results of its expressions."""
        raise NotImplementedError

    def _results(
        self, name: str, expression: Expression, records: Sequence[Record], rows: Sequence[Row]
    ) -> Sequence[Any]:
        try:
            return evaluate(expression, rows)
        except Exception:
            # Which of them it was, pandas does not say.
            for record, row in zip(records, rows, strict=True):
                try:
                    evaluate(expression, [row])
                except Exception as e:
                    raise failed(
                        name, record, f"{type(e).__name__}: {' '.join(str(e).split())}"
                    ) from e
            raise


def failed(name: str, record: Record, why: str) -> ConnectctlError:
    """Return the error of the expression ``name`` without a result for ``record``."""
    hint = "Correct the expression so that it accepts such a record."
    return ConnectctlError(
        f"The expression {name} failed for the record {name_of(record)}", why=why, next_step=hint
    )


def _problem(text: str, has_fields: bool) -> str | None:
    try:
        expression = parse(text)
    except ExpressionError as e:
        return str(e)
    fields = sorted(expression.names - set(OF_RECORD))
    if fields and not has_fields:
        hint = "set value.converter to JsonConverter for fields of JSON"
        return f"unknown column {fields[0]}; columns are {', '.join(OF_RECORD)}; {hint}"
    row = dict.fromkeys(expression.names) | {
        "topic": "",
        "partition": 0,
        "offset": 0,
        "timestamp": 0,
    }
    try:
        evaluate(expression, [row])
    except re.error as e:
        return f"invalid regular expression: {e}"
    except Exception as e:  # noqa: BLE001  # pandas raises anything
        # The types of fields are not known before there are records.
        return None if fields else f"{type(e).__name__}: {' '.join(str(e).split())}"
    return None


def is_true(name: str, record: Record, result: Any) -> bool:
    """Return the result of a condition; null is not true. Raises ``ConnectctlError`` for anything
    else.
    """
    if result is None or isinstance(result, bool):
        return bool(result)
    raise failed(name, record, f"it gives {result!r}, which is not true or false")


class ExpressionConnector(TransformConnector):
    """Its expressions are checked with the rest of its configuration."""

    task: type[ExpressionTask]

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        found = super().validate(configs)
        for name, message in self.task.problems(configs):
            found.setdefault(name, []).append(message)
        return found
