"""The interface of converters, modelled on ``org.apache.kafka.connect.storage.Converter``.

``value.converter: package.module:Class`` names one in Python, ``key.converter`` and
``header.converter`` as well. An object is made for each task, and for keys, values and headers
each; a task's thread calls it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from connectctl.ops.config.prefixed import Prefixed
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.spi.plugins import import_object
from connectctl.ops.task_runtime.spi.schema import Schema, SchemaAndValue


class Converter(ABC):
    """Converts between the values of connectors and the bytes of records.

    A failed conversion raises ``DataError``, or any exception: a source's task fails, and a sink
    handles the record as ``errors.*`` says.
    """

    # a hook that some do not need
    def configure(self, configs: Mapping[str, str], *, is_key: bool) -> None:  # noqa: B027
        """Take the properties of ``value.converter.…``, without that prefix. Raises ``BadInput`` for
        invalid ones; it is also called to validate them, so connect to nothing here.
        """

    @abstractmethod
    def from_connect_data(self, topic: str, schema: Schema | None, value: object) -> bytes | None:
        """Return the bytes of ``value``, None for a null. ``schema`` is the record's, None if it has
        none.
        """

    @abstractmethod
    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the schema, None without one, and the value of ``data``; None is a null."""


def converter_of(configs: Mapping[str, str], name: str, path: str) -> Converter:
    """Return the configured converter ``path``, which the property ``name`` of ``configs`` names.
    Raises ``BadInput`` if it cannot be imported, is not a converter, or refuses its properties.
    """
    try:
        found = import_object(path)
    except BadInput as e:
        if isinstance(e.__cause__, ImportError) and path.startswith("connectctl."):
            hint = "pip install 'connectctl[schemas]'"
            raise BadInput(f"{configs[name]} needs packages", why=e.why, next_step=hint) from e
        raise
    if not (isinstance(found, type) and issubclass(found, Converter)):
        raise BadInput(
            f"{path} is not a converter ({name})",
            why="it is not a subclass of connectctl.schema.Converter",
        )
    try:
        converter = found()
        converter.configure(Prefixed(configs, f"{name}."), is_key=name == "key.converter")
    except ConnectctlError:
        raise
    except Exception as e:
        raise BadInput(f"{path} refuses its configuration ({name})", why=str(e)) from e
    return converter
