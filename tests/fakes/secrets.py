"""Two hundred secrets for the places where people really have them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path

SHAPES = {
    "connection.password": "{}",
    "basic.auth.user.info": "me:{}",
    "ftp.passwd": "{}",
    "db.pwd": "{}",
    "smtp.pass": "{}",
    "oauth.clientSecret": "{}",
    "github.access_token": "{}",
    "apiKey": "{}",
    "elastic.api.key": "{}",
    "http.headers.authorization": "Token {}",
    "gcs.credentials.json": '{{"private_key": "{}"}}',
    "producer.override.sasl.jaas.config": 'x.Plain required username="u" password="{}";',
    "aws.secret.access.key": "{}",
    "azure.account.key": "{}==",
    "keystore.passphrase": "{}",
    "connection.url": "jdbc:mysql://db:3306/shop?user=u&password={}&ssl=true",
    "sqlserver.url": "jdbc:sqlserver://db:1433;databaseName=d;user=sa;password={};encrypt=true",
    "oracle.url": "jdbc:oracle:thin:scott/{}@//db:1521/shop",
    "redis.uri": "redis://:{}@cache:6379/0",
    "mongo.uri": "mongodb+srv://me:{}@cluster0.example.net/shop?w=majority",
    "amqp.uri": "amqp://me:p/q{}@broker/vhost",
    "alert.to": "https://hooks.slack.com/services/T00/B00/{}",
    "chat.target": "https://discord.com/api/webhooks/1234/{}",
    "http.url": "https://api.example.net/v1?key={}&page=1",
    "http.headers": "Accept: */*|Authorization: Bearer {}",
    "extra.json": '{{"host": "db", "auth": {{"user": "u", "password": "{}"}}, "urls": ["http://me:{}@h"]}}',
    "storage.connection": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core",
    "pin": "{}",
}
"""A property of a connector, and its value around the secret. ``pin`` is one by its plugin's definition alone."""
HARMLESS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "topics": "orders,tokens",
    "tokenizer": "standard",
    "password.file": "${file:/run/secrets/db.properties:password}",
    "secret": "${env:DB_SECRET}",
    "connection.user": "scott",
}
"""What must stay in sight beside them."""


class Planted:
    """Gives secrets, each another, and finds them again, also as Base64."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def secret(self) -> str:
        """A new one."""
        self.all.append(f"Pl4nt3d{len(self.all):03}q")
        return self.all[-1]

    def config(self) -> dict[str, str]:
        """A configuration with one secret in each shape."""
        found = {}
        for name, shape in SHAPES.items():
            secret = self.secret()
            found[name] = shape.format(*[secret] * shape.count("{}"))
        return found | HARMLESS

    def found_in(self, text: str) -> list[str]:
        """The secrets that ``text`` tells."""
        return [secret for secret in self.all if secret in text or base64.b64encode(secret.encode()).decode() in text]

    def in_files(self, directories: Iterable[Path]) -> Iterator[tuple[Path, list[str]]]:
        """The files below ``directories`` that tell some, with those."""
        for directory in directories:
            for path in directory.rglob("*"):
                if path.is_file() and (found := self.found_in(path.read_bytes().decode("utf-8", "replace"))):
                    yield path, found


def trace_with(secrets: Iterable[str]) -> str:
    """A stack trace that repeats them, with nothing around that calls them secrets, and some that it calls so itself."""
    lines = [f"java.sql.SQLException: login as u with {secret} was refused" for secret in secrets]
    return "java.lang.RuntimeException: x\n\tat Y\n" + "\n".join(f"Caused by: {line}\n\tat Z" for line in lines)
