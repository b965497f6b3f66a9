"""The files that bad inputs name, made beside each other in a directory that is then the current
one.
"""

from __future__ import annotations

from pathlib import Path

DEPTH = 100_000
FILES: dict[str, str | bytes] = {
    # what is right, for options that are wrong beside it
    "ok.json": '{"connector.class": "FileStreamSource", "file": "/tmp/a", "topic": "t", "name": '
    '"a"}',
    "ok.toml": "a = 1",
    "ok.jsonl": '{"topic": "t", "partition": 0, "offset": 0, "key": "[\\"c\\",{\\"p\\":1}]", '
    '"value": "{\\"o\\":1}"}\n',
    "ok-offsets.json": '{"offsets": [{"partition": {"p": 1}, "offset": {"o": 1}}]}',
    "ok.yaml": "name: a\nconfig: {connector.class: FileStreamSource, file: /tmp/a, topic: t}\n",
    "ok-config.yaml": "contexts:\n  a: {bootstrap_servers: 'localhost:1', group_id: g}\n  b: "
    "{group_id: h}\n",
    # what nothing can read
    "empty.json": "",
    "broken.json": '{"a": [1, 2',
    "broken.yaml": "a: [1, 2\nb: {",
    "latin.json": '{"a": "é"}'.encode("latin-1"),
    "latin.yaml": "contexts: {é: {}}".encode("latin-1"),
    "list.json": "[1, 2]",
    "list.yaml": "- a\n- b\n",
    "number.json": "7",
    "deep.json": "[" * DEPTH + "]" * DEPTH,
    "deep.jsonl": '{"key": ' + "[" * DEPTH + "]" * DEPTH + "}\n",
    "deep.yaml": "[" * DEPTH + "]" * DEPTH,
    "bomb.yaml": "a0: &a0 [x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)),
    # context files
    "ports.yaml": "current: a\ncontexts:\n  a: {bootstrap_servers: 'b:99999', group_id: g}\n",
    "otherports.yaml": (
        "current: a\ncontexts:\n  a:\n    bootstrap_servers: b:1\n    group_id: g\n"
        "    clusters: {other: {bootstrap_servers: 'c:0'}}\n"
    ),
    "typo.yaml": "contexts:\n  a: {group_idd: g}\n",
    "types.yaml": "contexts:\n  a: {group_id: [g]}\n",
    "nocurrent.yaml": "current: b\ncontexts:\n  a: {group_id: g}\n",
    "twosources.yaml": (
        "current: a\ncontexts:\n  a:\n    bootstrap_servers: b:1\n    client: {sasl.password: "
        "{env: A, file: b}}\n"
    ),
    "nosecret.yaml": (
        "current: a\ncontexts:\n  a:\n    bootstrap_servers: b:1\n    group_id: g\n"
        "    client: {sasl.password: {file: missing.txt}}\n"
    ),
    "noenv.yaml": (
        "current: a\ncontexts:\n  a:\n    bootstrap_servers: b:1\n    group_id: g\n"
        "    client: {sasl.password: {env: NO_SUCH_VARIABLE}}\n"
    ),
    "nocommand.yaml": (
        "current: a\ncontexts:\n  a:\n    bootstrap_servers: b:1\n    group_id: g\n"
        "    client: {sasl.password: {command: 'exit 3'}}\n"
    ),
    "driver.yaml": "current: a\ncontexts:\n  a: {group_id: g, workers: {driver: magic}}\n",
    # configurations
    "noclass.json": '{"name": "a", "topic": "t"}',
    "kafkaconnect.yaml": "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnect\nmetadata: "
    "{name: a}\nspec: {}\n",
    # offsets
    "nopartition.json": '{"offsets": [{"offset": {"o": 1}}]}',
    "nested.json": '{"offsets": [{"partition": {"p": [1]}, "offset": {"o": 1}}]}',
    "twice.json": (
        '{"offsets": [{"partition": {"p": 1}, "offset": {"o": 1}},\n {"partition": {"p": 1}, '
        '"offset": {"o": 2}}]}'
    ),
    "twokeys.json": '{"offsets": [{"partition": {"p": 1}, "offset": {\n  "o": 1,\n  "o": 2\n}}]}',
    "twokeys.yaml": "offsets:\n- partition: {p: 1}\n  offset:\n    o: 1\n    o: 2\n",
    "big.json": '{"offsets": [{"partition": {"p": 1}, "offset": {"o": 9223372036854775808}}]}',
    "nan.json": '{"offsets": [{"partition": {"p": 1}, "offset": {"o": NaN}}]}',
    "surrogate.json": '{"offsets": [{"partition": {"p": "\\ud800"}, "offset": {"o": 1}}]}',
    "others.json": '{"kind": "SourceOffsets", "connectors": [{"name": "a", "offsets": []}, '
    '{"name": "b", "offsets": []}]}',
    "badline.jsonl": '{"key": "a", "value": "b"}\nnonsense\n',
    "nokey.jsonl": '{"value": "b"}\n',
    "base64.jsonl": '{"keyBase64": "!!!", "value": "b"}\n',
    # jobs
    "typojob.yaml": "name: a\nconfg: {}\n",
    "noname.yaml": "config: {connector.class: FileStreamSource, file: /tmp/a, topic: t}\n",
    "noconfig.yaml": "name: a\n",
    "badidle.yaml": "name: a\nconfig: {connector.class: FileStreamSource, file: /tmp/a, topic: "
    "t}\nuntil: {idle: soon}\n",
    "noplugin.yaml": (
        "name: a\nconfig: {connector.class: FileStreamSource, file: /tmp/a, topic: t}\nplugins: "
        "[missing.whl]\n"
    ),
}


def make(directory: Path) -> None:
    """Write them all, with a directory that is not empty."""
    for name, content in FILES.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (directory / "full").mkdir()
    (directory / "full" / "file").write_text("")
