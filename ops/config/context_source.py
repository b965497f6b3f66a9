"""A context from the files with which workers are started: their properties, the variables of a
container's image, a compose file, Strimzi's KafkaConnect.

Secrets become references. What a context cannot have of a file is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectctl.ops.config import java_clients, java_properties, strimzi, yaml_text
from connectctl.ops.config.endpoints import problem_of_brokers
from connectctl.ops.config.placeholders import environment_of, read_environment
from connectctl.ops.core.errors import BadInput

TOPICS = {
    "config.storage.topic": "config",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
}
_PREFIX = "CONNECT_"
_DEBEZIUMS = ("BOOTSTRAP_SERVERS", "GROUP_ID", *(n.upper().replace(".", "_") for n in TOPICS))
"""Variables of Debezium's image without a prefix."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_LISTENER = re.compile(r"(https?)://([^:/]*):(\d+)", re.IGNORECASE)
_ANY_HOST = ("", "0.0.0.0", "[::]", "localhost")
_ADVERTISED = ("KAFKA_ADVERTISED_LISTENERS", "KAFKA_CFG_ADVERTISED_LISTENERS")
_REST_PORT = "8083"


@dataclass
class Source:
    """The entry of a context, and notes: what was not taken, and what is left to do."""

    entry: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Secrets:
    """Makes references to environment variables. ``of_variable`` are the values of variables that
    hold a secret alone.
    """

    context: str
    source: Source
    of_variable: Mapping[str, str] = field(default_factory=dict)

    def refer(self, name: str, value: str) -> Mapping[str, str]:
        variable = next((v for v, text in self.of_variable.items() if text == value), None)
        if (interpolated := _VARIABLE.fullmatch(value)) and not interpolated[2]:
            variable = interpolated[1] or interpolated[3]
        own = re.sub(r"\W", "_", f"{self.context}_{name}").upper()
        self.source.notes.append(
            f"client.{name} is read from the environment variable {variable or own}: set it"
        )
        return {"env": variable or own}


def read_source(location: str, context: str) -> Source:
    """Return the context ``context`` from the file at ``location``: a path, or
    ``PATH:SERVICE`` of a compose file, ``PATH:NAME`` of a KafkaConnect. Raises ``BadInput``.
    """
    path, part = Path(location), None
    if not path.exists() and ":" in location:
        before, _, part = location.rpartition(":")
        path = Path(before)
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as e:
        raise BadInput(f"{path} cannot be read", why=e.strerror) from e
    except UnicodeDecodeError as e:
        raise BadInput(f"{path} is not UTF-8") from e
    if path.suffix.lower() in (".yaml", ".yml"):
        return _of_yaml(_documents(text, path), part, context, path)
    try:
        properties = java_properties.read(raw.decode(java_properties.ENCODING))
    except java_properties.Malformed as e:
        raise BadInput(f"{path} cannot be read", why=str(e)) from e
    if "bootstrap.servers" in properties:
        return _of_worker(properties, context)
    try:
        variables = read_environment(text, str(path))
    except BadInput:
        variables = {}
    if not _is_of_worker(variables):
        raise BadInput(
            f"{path} is no configuration of a worker",
            why="it has neither bootstrap.servers nor CONNECT_BOOTSTRAP_SERVERS",
            next_step="Give worker.properties, a file of CONNECT_… variables, a compose file, or a "
            "KafkaConnect of Strimzi.",
        )
    return _of_worker(_properties_of(variables), context, variables)


def _documents(text: str, path: Path) -> list[Any]:
    import yaml

    try:
        yaml_text.check(text)
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as e:
        raise BadInput(f"{path} is not YAML", why=" ".join(str(e).split())) from e


def _of_yaml(documents: list[Any], part: str | None, context: str, path: Path) -> Source:
    objects = [each for each in documents if isinstance(each, dict)]
    items = [i for each in objects for i in (each.get("items") or [each]) if isinstance(i, dict)]
    clusters = {
        str((each.get("metadata") or {}).get("name")): each
        for each in items
        if each.get("kind") == "KafkaConnect" and strimzi.is_manifest(each)
    }
    services = next((each["services"] for each in objects if each.get("services")), None)
    if clusters:
        return _of_strimzi(*_one(clusters, part, "KafkaConnect", path), context)
    if isinstance(services, dict):
        found = {
            name: variables
            for name, service in services.items()
            if _is_of_worker(variables := _variables(service, path))
        }
        name, variables = _one(found, part, "service of a worker", path)
        properties = _properties_of(variables)
        source = _of_worker(properties, context, variables)
        _publish_rest(source, name, dict(_ports(services[name])), _rest_port(properties))
        _publish_brokers(source, services, path)
        return source
    raise BadInput(
        f"{path} has no configuration of a worker",
        why="it is neither a compose file nor a KafkaConnect of Strimzi",
    )


def _one(found: Mapping[str, Any], part: str | None, kind: str, path: Path) -> tuple[str, Any]:
    if part is not None and part in found:
        return part, found[part]
    if part is None and len(found) == 1:
        return next(iter(found.items()))
    names = ", ".join(found) or "none"
    what = f"{path} has no {kind}{f' {part}' if part else ''}"
    what = what if part or not found else f"{path} has more than one {kind}"
    step = f"Name one: --from {path}:{next(iter(found))}" if found else None
    raise BadInput(what, why=f"it has {names}", next_step=step)


# --------------------------------------------------------------------------------------- properties


def _of_worker(
    properties: Mapping[str, str], context: str, variables: Mapping[str, str] | None = None
) -> Source:
    source = Source()
    entry = source.entry
    for name, ours in (("bootstrap.servers", "bootstrap_servers"), ("group.id", "group_id")):
        if value := properties.get(name, "").strip():
            entry[ours] = ",".join(part.strip() for part in value.split(","))
    topics = {ours: properties[name] for name, ours in TOPICS.items() if properties.get(name)}
    if topics:
        entry["topics"] = topics
    source.notes += _about_rest(properties)
    client = java_clients.client_of(properties, _Secrets(context, source, variables or {}).refer)
    if client.entry:
        entry["client"] = dict(client.entry)
    source.notes += [f"not taken: {reason}" for reason in client.missing]
    return source


def _about_rest(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield notes about REST: workers are found through their group, all of them and not only this
    one.
    """
    url = _rest(properties)
    if url is not None:
        yield f"REST: workers are found through their group; this one advertises {url}"
    if url is not None and url.startswith("https:"):
        yield "REST has TLS: --set rest_tls.ca=FILE unless the system trusts its certificate"
    if "BasicAuthSecurityRestExtension" in properties.get("rest.extension.classes", ""):
        yield "REST has a login: --set rest_auth.username=NAME --set rest_auth.password=env:NAME"


def _rest(properties: Mapping[str, str]) -> str | None:
    """Return the address that the worker advertises; None if it is the name of its host."""
    listeners = properties.get("listeners", "")
    first = _LISTENER.search(listeners)
    host = properties.get("rest.advertised.host.name") or properties.get("rest.host.name")
    host = host or (first[2] if first and first[2] not in _ANY_HOST else None)
    if not host or host in _ANY_HOST:
        return None
    port = properties.get("rest.advertised.port") or _rest_port(properties)
    scheme = properties.get("rest.advertised.listener") or (first[1] if first else "http")
    return f"{scheme.lower()}://{host}:{port}"


def _rest_port(properties: Mapping[str, str]) -> str:
    first = _LISTENER.search(properties.get("listeners", ""))
    return first[3] if first else properties.get("rest.port", _REST_PORT)


# ---------------------------------------------------------------------------------------- variables


def _is_of_worker(variables: Mapping[str, str]) -> bool:
    debeziums = {"BOOTSTRAP_SERVERS", "GROUP_ID"} <= variables.keys()
    return f"{_PREFIX}BOOTSTRAP_SERVERS" in variables or debeziums


def _properties_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's properties, as the images of Confluent and Debezium make them."""
    own = {name: variables[name] for name in _DEBEZIUMS if name in variables}
    prefixed = {
        name.removeprefix(_PREFIX): value
        for name, value in variables.items()
        if name.startswith(_PREFIX)
    }
    return {
        re.sub("_+", _separator, name).lower(): value for name, value in {**own, **prefixed}.items()
    }


def _separator(found: re.Match[str]) -> str:
    return {1: ".", 2: "-", 3: "_"}.get(len(found[0]), found[0])


def _variables(service: Any, path: Path) -> dict[str, str]:
    """Return the variables of a service of a compose file, with its files of variables."""
    if not isinstance(service, dict):
        return {}
    found: dict[str, str] = {}
    file = path.parent / ".env"
    defaults = environment_of(file) if file.is_file() else {}
    listed = service.get("env_file") or []
    for each in [listed] if isinstance(listed, (str, dict)) else listed:
        name = each.get("path") if isinstance(each, dict) else each
        found |= environment_of(path.parent / str(name))
    given = service.get("environment") or {}
    pairs = given.items() if isinstance(given, dict) else (str(g).split("=", 1) for g in given)
    for name, *value in pairs:
        text = "" if not value or value[0] is None else str(value[0])
        found[str(name)] = _interpolated(text, defaults)
    return found


def _interpolated(text: str, known: Mapping[str, str]) -> str:
    """Return ``text`` with the defaults of its variables; one without a default is kept."""

    def value_of(found: re.Match[str]) -> str:
        return known.get(found[1] or found[3]) or found[2] or found[0]

    return "$".join(_VARIABLE.sub(value_of, part) for part in text.split("$$"))


def _publish_rest(source: Source, name: str, ports: Mapping[str, str], port: str) -> None:
    """Take the address at which the compose file publishes the worker's REST server."""
    source.notes = [note for note in source.notes if not note.startswith("REST: ")]
    if port in ports:
        source.entry["rest"] = [f"http://localhost:{ports[port]}"]
        source.entry["rest_is_group"] = True
    else:
        source.notes.append(f"not taken: REST, because {name} publishes no port {port}")


def _publish_brokers(source: Source, services: Mapping[str, Any], path: Path) -> None:
    """Replace the brokers' addresses between containers by those that they advertise to others."""
    entry = source.entry
    servers = str(entry.get("bootstrap_servers", "")).split(",")
    inside = [server for server in servers if server.rsplit(":", 1)[0] in services]
    if not inside:
        return
    advertised = [
        address
        for server in inside
        for address in _advertised(_variables(services[server.rsplit(":", 1)[0]], path))
        if address.rsplit(":", 1)[0] not in services
    ]
    if advertised:
        entry["bootstrap_servers"] = ",".join(dict.fromkeys(advertised))
        return
    source.notes.append(
        f"{inside[0]} is an address of the containers: give --bootstrap-servers as this machine "
        "reaches the brokers"
    )


def _advertised(variables: Mapping[str, str]) -> Iterator[str]:
    text = next((variables[name] for name in _ADVERTISED if name in variables), "")
    for listener in text.split(","):
        address = listener.rpartition("://")[2].strip()
        if address and problem_of_brokers(address) is None:
            yield address


def _ports(service: Any) -> Iterator[tuple[str, str]]:
    """Yield the container's ports with those of this machine."""
    for port in service.get("ports") or ():
        if isinstance(port, dict):
            yield str(port.get("target")), str(port.get("published") or port.get("target"))
            continue
        *before, inner = str(port).split("/")[0].split(":")
        yield inner, before[-1] if before else inner


# ------------------------------------------------------------------------------------------ Strimzi


def _of_strimzi(name: str, resource: Mapping[str, Any], context: str) -> Source:
    spec = resource.get("spec") or {}
    namespace = (resource.get("metadata") or {}).get("namespace")
    config = {
        "group.id": "connect-cluster",
        "config.storage.topic": "connect-cluster-configs",
        "offset.storage.topic": "connect-cluster-offsets",
        "status.storage.topic": "connect-cluster-status",
    } | {key: str(value) for key, value in (spec.get("config") or {}).items()}
    for member, key in (
        ("bootstrapServers", "bootstrap.servers"),
        ("groupId", "group.id"),
        ("configStorageTopic", "config.storage.topic"),
        ("offsetStorageTopic", "offset.storage.topic"),
        ("statusStorageTopic", "status.storage.topic"),
    ):
        if spec.get(member):
            config[key] = str(spec[member])
    login, tls = spec.get("authentication") or {}, spec.get("tls")
    kind = str(login.get("type", ""))
    sasl = kind in ("plain", "oauth") or kind.startswith("scram-")
    config["security.protocol"] = ("SASL_" if sasl else "") + (
        "PLAINTEXT" if tls is None else "SSL"
    )
    source = _of_worker(config, context)
    client = source.entry.setdefault("client", {})
    secret = _Kubernetes(namespace)
    if kind == "plain" or kind.startswith("scram-"):
        client |= {"sasl.mechanism": kind.upper(), "sasl.username": str(login.get("username"))}
        password = login.get("passwordSecret") or {}
        client["sasl.password"] = secret.of(password, "password")
    elif kind == "tls":
        pair = login.get("certificateAndKey") or {}
        client["ssl.certificate.pem"] = secret.of(pair, "certificate")
        client["ssl.key.pem"] = secret.of(pair, "key")
    elif kind:
        source.notes.append(f"not taken: authentication of the type {kind}")
    trusted = [each for each in (tls or {}).get("trustedCertificates") or () if each]
    if trusted and trusted[0].get("certificate"):
        client["ssl.ca.pem"] = secret.of(trusted[0], "certificate")
    if len(trusted) > 1 or (trusted and not trusted[0].get("certificate")):
        source.notes.append(
            "not taken: further trustedCertificates; --set client.ssl.ca.location=FILE"
        )
    service = f"{name}-connect-api" + (f".{namespace}.svc" if namespace else "")
    source.entry["rest"], source.entry["rest_is_group"] = [f"http://{service}:{_REST_PORT}"], True
    source.notes.append(f"{service} is an address within Kubernetes: elsewhere forward its port")
    return source


@dataclass(frozen=True)
class _Kubernetes:
    """Makes references to Secrets, which kubectl prints."""

    namespace: str | None

    def of(self, secret: Mapping[str, Any], member: str) -> dict[str, str]:
        where = f" -n {self.namespace}" if self.namespace else ""
        key = str(secret.get(member) or member)
        template = f'{{{{index .data "{key}" | base64decode}}}}'
        command = f"kubectl get secret {secret.get('secretName')}{where}"
        return {"command": f"{command} -o go-template='{template}'"}
