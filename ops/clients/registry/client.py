"""A client of a Schema Registry: reads schemas by id, each with one request, and by subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from confluent_kafka.schema_registry import Schema as RegistrySchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError
from connectctl.ops.clients.registry.settings import URL, client_settings
from connectctl.ops.config.masking import masked
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, Unreachable

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Registered:
    """A schema of the registry: ``kind`` is AVRO, JSON or PROTOBUF; ``references`` are the texts of
    the schemas that it refers to, by their names, those that others need first.
    """

    id: int
    kind: str
    text: str
    references: Mapping[str, str]


class Registry:
    """Asks one registry. Its converters are used by one thread each."""

    def __init__(self, configs: Mapping[str, str]):
        settings = client_settings(configs)
        self.url = masked(settings["url"])
        try:
            self._client = SchemaRegistryClient(settings)
        except (ValueError, TypeError, OSError) as e:
            raise BadInput(
                f"Invalid properties of the Schema Registry {self.url}", why=str(e)
            ) from e
        self._by_id: dict[int, Registered] = {}

    def schema(self, schema_id: int) -> Registered:
        """Return a schema by its id. Raises ``ConnectctlError`` if there is none."""
        if schema_id not in self._by_id:
            found = self._ask(f"schema {schema_id}", lambda: self._client.get_schema(schema_id))
            self._by_id[schema_id] = self._registered(schema_id, found)
        return self._by_id[schema_id]

    def register(self, subject: str, kind: str, text: str, *, normalize: bool = False) -> int:
        """Return the id of a schema, which is registered under ``subject`` if it is not yet."""
        schema = RegistrySchema(text, kind)
        found = self._ask(
            f"the schema of {subject}",
            lambda: self._client.register_schema(subject, schema, normalize),
        )
        return int(found)

    def lookup(self, subject: str, kind: str, text: str, *, normalize: bool = False) -> int:
        """Return the id of a schema of ``subject``. Raises ``ConnectctlError`` if it is not one."""
        schema = RegistrySchema(text, kind)
        found = self._ask(
            f"the schema of {subject}",
            lambda: self._client.lookup_schema(subject, schema, normalize),
        )
        return int(found.schema_id)

    def latest(self, subject: str) -> Registered:
        """Return the newest schema of ``subject``. Raises ``ConnectctlError`` if it has none."""
        found = self._ask(subject, lambda: self._client.get_latest_version(subject))
        return self._registered(int(found.schema_id), found.schema)

    def _registered(self, schema_id: int, schema: RegistrySchema) -> Registered:
        references: dict[str, str] = {}
        self._resolve(schema.references or [], references)
        return Registered(
            schema_id, schema.schema_type or "AVRO", str(schema.schema_str), references
        )

    def _resolve(self, references: list[SchemaReference], found: dict[str, str]) -> None:
        for each in references:
            name = str(each.name)
            if name not in found:
                ask = partial(self._client.get_version, str(each.subject), int(each.version or 0))
                schema = self._ask(name, ask).schema
                self._resolve(schema.references or [], found)
                found[name] = str(schema.schema_str)

    def _ask(self, what: str, ask: Callable[[], _Result]) -> _Result:
        """Return the registry's answer. The client repeats a request that fails in a way that may
        pass. Raises ``Unreachable``, ``NotAuthorized``, and ``ConnectctlError`` with the code
        schema-refused for a schema that the registry refuses or does not have, all without secrets.
        """
        try:
            return ask()
        except SchemaRegistryError as e:
            raise self._error(what, e) from None
        except OAuthTokenError as e:
            raise NotAuthorized(
                f"No token for the Schema Registry {self.url}",
                why=one_line(e),
                next_step="Correct bearer.auth.*.",
            ) from None
        except (ValueError, AttributeError, KeyError, TypeError) as e:
            raise self._garbage(what, str(e)) from None
        except Exception as e:  # noqa: BLE001  # classified by name
            raise self._unreachable(what, e) from None

    def _unreachable(self, what: str, e: Exception) -> Exception:
        """Return the error for one of the HTTP client: of httpx or of its successor httpx2, whichever
        confluent-kafka finds. Any other is returned itself.
        """
        kinds = {kind.__name__ for kind in type(e).__mro__}
        next_step = f"Check that it runs, and {URL}."
        if "TimeoutException" in kinds:
            return Unreachable(
                f"The Schema Registry {self.url} did not answer in time for {what}",
                why=type(e).__name__,
                next_step=next_step,
            )
        if "TransportError" in kinds:
            return Unreachable(
                f"Cannot reach the Schema Registry {self.url} for {what}",
                why=str(e) or type(e).__name__,
                next_step=next_step,
            )
        return e

    def _error(self, what: str, e: SchemaRegistryError) -> ConnectctlError:
        status, why = e.http_status_code, one_line(e.error_message)
        if status in (401, 403):
            return NotAuthorized(
                f"The Schema Registry {self.url} does not allow it ({status}): {what}",
                next_step="Set basic.auth.credentials.source=USER_INFO and basic.auth.user.info, or "
                "bearer.auth.*, or use a login with more rights.",
            )
        if e.error_code == -1:
            return self._garbage(what, f"{status}: {why}")
        if status >= 500 or status == 429:
            return Unreachable(f"The Schema Registry {self.url} failed ({status}): {what}", why=why)
        return ConnectctlError(
            f"The Schema Registry {self.url} refuses {what}"
            if status != 404
            else f"The Schema Registry {self.url} does not have {what}",
            why=why,
            code="schema-refused",
        )

    def _garbage(self, what: str, why: str) -> Unreachable:
        return Unreachable(
            f"{self.url} does not answer as a Schema Registry for {what}",
            why=one_line(why),
            next_step=f"Correct {URL}; Apicurio Registry has the API at /apis/ccompat/v7.",
        )


def one_line(text: object) -> str:
    """Return a message, which may be of a server and long, as one line."""
    return " ".join(str(text).split())[:200]
