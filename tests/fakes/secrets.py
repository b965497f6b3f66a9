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
    "extra.json": '{{"host": "db", "auth": {{"user": "u", "password": "{}"}}, "urls": '
    '["http://me:{}@h"]}}',
    "storage.connection": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core",
    "pin": "{}",
    # By their names.
    "http.auth": "dXNlcjp{}",
    "db.pw": "{}",
    "userpass": "{}",
    "hash.salt": "{}",
    "sim.pin": "{}",
    "snmp.community": "{}",
    "snmp.community.string": "community={}",
    "login.otp": "{}",
    "azure.devops.pat": "{}",
    "signing.hmac": "{}",
    "session.cookie": "{}",
    "backup.creds": "{}",
    "wallet.mnemonic": "{} horse battery",
    "datenbank.passwort": "{}",
    "ftp.login": "me:{}",
    "smtp.username": "me:{}",
    "snowflake.private.key": "MIIEv{}",
    "servicebus.shared.access.signature": "{}",
    # Signed URLs and keys in URLs.
    "sas.url": "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sr=b&sig={}%3D&se=2030",
    "s3.url": "https://b.s3.amazonaws.com/o?X-Amz-Date=1&X-Amz-Signature={}&X-Amz-Expires=60",
    "s3.session.url": "https://b.s3.amazonaws.com/o?X-Amz-Security-Token={}&x=1",
    "s3.credential.url": "https://b.s3.amazonaws.com/o?X-Amz-Credential={}%2F20260101&x=1",
    "gcs.url": "https://storage.googleapis.com/b/o?X-Goog-Signature={}&x=1",
    "gcs.old.url": "https://storage.googleapis.com/b/o?GoogleAccessId={}&Expires=1",
    "cloudfront.url": "https://d.cloudfront.net/o?Expires=1&Signature={}&Key-Pair-Id=K",
    "aws.old.url": "https://b.s3.amazonaws.com/o?AWSAccessKeyId={}&Expires=1",
    "oss.url": "https://b.oss.aliyuncs.com/o?OSSAccessKeyId={}&Expires=1",
    "function.url": "https://f.azurewebsites.net/api/x?code={}&clientId=default",
    "maps.url": "https://api.example.net/geo?subscription-key={}&x=1",
    "sas.query": "sv=2022-11-02&ss=b&srt=sco&sp=rl&se=2030&sig={}",
    # URL-encoded pairs.
    "form.body": "grant_type=password&username=me&pw={}&scope=all",
    "form.auth": "a=b&userpass={}",
    "form.encoded": "user%3Dme%26password%3D{}%26x%3D1",
    "form.twice": "https://h/login?next=%2Fa%3Fx%3D1%26auth%3D{}",
    "form.pin": "user=me&pin={}",
    # Names and values apart, in JSON.
    "headers.json": '[{{"name": "Authorization", "value": "{}"}}, {{"name": "Accept", "value": '
    '"*/*"}}]',
    "options.json": '[{{"key": "db_password", "value": "{}"}}]',
    "params.json": '{{"params": [{{"field": "apiKey", "values": ["{}", "{}"]}}]}}',
    "pairs.json": '[["password", "{}"], ["user", "me"]]',
    "docker.json": '{{"auths": {{"registry": {{"auth": "{}"}}}}}}',
    "vault.json": '{{"secrets": {{"database": "{}"}}}}',
    "nested.json": '{{"conf": "{{\\"password\\": \\"{}\\"}}"}}',
    "numbers.json": '{{"url": "https://me:{}@h/x", "n": 1}}',
    # Oracle, PostgreSQL, and other addresses with a login.
    "oracle.ezconnect": "scott/{}@db.example.net:1521/shop",
    "oracle.slashes": "scott/{}@//db.example.net/shop",
    "oracle.alias": "scott/{}@SHOP",
    "oracle.descriptor": "scott/{}@(DESCRIPTION=(ADDRESS=(HOST=db)(PORT=1521)))",
    "oracle.quoted": 'scott/"{}@x"@db:1521/shop',
    "oracle.oci": "jdbc:oracle:oci:scott/{}@shop",
    "pg.file": "db.example.net:5432:shop:me:{}",
    "pg.any": "*:*:shop:me:{}",
    "pg.lines": "h1:5432:a:me:{}\nh2:5432:b:me:x{}",
    "pg.dsn": "host=db dbname=shop user=me password={} sslmode=require",
    "broker.address": "me:{}@mq.example.net:5672",
    "sentry.dsn": "https://{}0123456789abcdef@o1.ingest.sentry.io/1",
    "odbc.string": "Driver=ODBC;Server=db;Uid=sa;Pwd=a b {};Timeout=3",
    "odbc.braces": "Server=db;Uid=sa;PW={{{};x}}",
    "servicebus.string": "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey={}=",
    "teradata.url": "jdbc:teradata://h/USER=me,PASSWORD={}",
    # Files and hashes.
    "netrc": "machine h login me password {}",
    "htpasswd": "me:$apr1$salt1234${}0123456789",
    "shadow": "$6$salt1234${}0123456789",
    "ldap.hash": "{{SSHA}}{}0123456789",
    "pem": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n{}\n-----END PGP PRIVATE KEY BLOCK-----",
    "pem.encoded": "base64:-----BEGIN RSA PRIVATE KEY-----\n{}0123456789\n-----END RSA PRIVATE "
    "KEY-----",
    "service.account": 'base64:{{\n  "type": "service_account",\n  "private_key": '
    '"{}0123456789"\n}}',
    "der.key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{}0123456789",
    "p12.file": "MIIJqQIBAzCCCW8GCSqGSIb3DQEHAaCC{}0123456789",
    "jks.file": "/u3+7QAAAAIAAAAB{}0123456789",
    "xml": "<server><user>me</user><password>{}</password></server>",
    "yaml": "user: me\npassword: {}\n",
    "properties": "user=me\ndb.password={}\nx=1",
    # Tokens, headers and command lines.
    "gitlab": "glpat-{}abcdefghij",
    "stripe": "sk_live_{}abcdefghij",
    "google": "AIzaSy{}abcdefghijabcdefghij",
    "vault": "hvs.{}abcdefghijabcdefghij",
    "sendgrid": "SG.{}abcdefghij.{}abcdefghij",
    "aws.temporary": "https://h/x?auth={}&key=ASIAABCDEFGHIJKLMNOP",
    "cookies.line": "Cookie: session={}; theme=dark",
    "mysql.command": "mysqldump -u me -p{} shop",
    "plink.command": "plink -pw {} me@h",
    "java.options": "-Dx=1 -Djavax.net.ssl.keyStorePassword={} -Dy=2",
}
"""A property of a connector, and its value around the secret."""
HARMLESS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "topics": "orders,tokens",
    "tokenizer": "standard",
    "password.file": "${file:/run/secrets/db.properties:password}",
    "secret": "${env:DB_SECRET}",
    "connection.user": "scott",
    "image": "registry.example.net/team/image@sha256:0123456789abcdef",
    "package": "org.example:artifact:1.0@jar",
    "repository": "git@github.com:team/repo.git",
    "http.auth.type": "OAUTH2",
    "schema.registry.auth": "basic",
    "partition.spec": "year=2026/month=01",
    "where": "a = 1 and b = 2; c = 3",
    "ssl.ca.pem": "-----BEGIN CERTIFICATE----- MIID -----END CERTIFICATE-----",
    "super.users": "User:alice@EXAMPLE.COM",
    "mail": "mailto:me@example.net",
    "mac": "aa:11:bb:22:cc:33",
    "encoded.certificate": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUQKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
    "encoded.json": "eyJhIjogMSwgImIiOiAidGhpcyBpcyBub3Qgc2VjcmV0In0=",
    "time": "12:30:45",
    "columns": "id,name,community_id,pinned,authored",
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
        return {name: self.value(shape) for name, shape in SHAPES.items()} | HARMLESS

    def value(self, shape: str) -> str:
        """A value with a new secret in this shape; what follows ``base64:`` is encoded."""
        secret = self.secret()
        kind, _, inside = shape.rpartition("base64:")
        text = inside.format(*[secret] * inside.count("{}"))
        if not kind and inside == shape:
            return text
        encoded = base64.b64encode(text.encode()).decode()
        self.all.append(encoded[40:60])
        return encoded

    def found_in(self, text: str) -> list[str]:
        """The secrets that ``text`` tells."""
        return [
            secret
            for secret in self.all
            if secret in text or base64.b64encode(secret.encode()).decode() in text
        ]

    def in_files(self, directories: Iterable[Path]) -> Iterator[tuple[Path, list[str]]]:
        """The files below ``directories`` that tell some, with those."""
        for directory in directories:
            for path in directory.rglob("*"):
                if path.is_file() and (
                    found := self.found_in(path.read_bytes().decode("utf-8", "replace"))
                ):
                    yield path, found


def trace_with(secrets: Iterable[str]) -> str:
    """A stack trace that repeats them, with nothing around that calls them secrets, and some that
    it calls so itself.
    """
    lines = [f"java.sql.SQLException: login as u with {secret} was refused" for secret in secrets]
    return "java.lang.RuntimeException: x\n\tat Y\n" + "\n".join(
        f"Caused by: {line}\n\tat Z" for line in lines
    )
