"""Changes of configuration, and what the plan of each says of the source offsets. ``{d}`` is a
directory, ``{u}`` a word.

The first of each class and those that are unlike the others are ``QUICK``; all are what ``slow``
tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

JDBC = "io.confluent.connect.jdbc.JdbcSourceConnector"
MYSQL = "io.debezium.connector.mysql.MySqlConnector"
SQLSERVER = "io.debezium.connector.sqlserver.SqlServerConnector"
ACCOUNT = "com.example.AccountSource"
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
CARRY = "--carry-offsets"
Partition = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A connector of ``kind`` with ``config``, and offsets that were stored under its name before;
    then a ``change``.

    ``change`` are arguments of ``connectors patch``; or ``new`` is created, with the same
    configuration under its own name (``again``, after the first was deleted) or another one. The
    rest is what the plan says; ``open``: that it cannot know what begins anew.
    """

    name: str
    kind: str
    config: Mapping[str, str]
    change: Sequence[str] = ()
    again: bool = False
    renamed: bool = False
    older: Sequence[tuple[Partition, Mapping[str, Any]]] = ()
    orphaned: Sequence[Partition] = ()
    resumed: Sequence[Partition] = ()
    begun: Sequence[Partition] = ()
    carried: Sequence[Partition] = ()
    unknown: Sequence[Partition] = ()
    says: str = ""
    open: bool = False

    def of(self, directory: str, word: str) -> Case:
        """The same with a directory and a word of its own."""
        texts = {each.name: json.dumps(getattr(self, each.name)) for each in fields(self)}
        return Case(
            **{
                name: json.loads(t.replace("{d}", directory).replace("{u}", word))
                for name, t in texts.items()
            }
        )


A, B = {"filename": "{d}/a.txt"}, {"filename": "{d}/b.txt"}
X, Y = ({"cluster": "eu", "topic": f"{name}-{{u}}", "partition": 0} for name in "xy")
US = {"cluster": "us", "topic": "x-{u}", "partition": 0}
TA, TB, TC = ({"protocol": "1", "table": f"db.{name}"} for name in "abc")
P, Q = {"server": "p-{u}"}, {"server": "q-{u}"}
PA, PB, QA, QB = (
    {"server": f"{server}-{{u}}", "database": name} for server in "pq" for name in ("one", "two")
)
LEFT, RIGHT, FORMER = ({"account": "first", "path": path} for path in ("left", "right", "former"))
SECOND = {"account": "second", "path": "left"}
QUERY = {"query": "query"}
file_a = {"file": "{d}/a.txt"}
two = {"topics": "x-{u},y-{u}"}
one = {"topics": "x-{u}"}
incrementing = {"mode": "incrementing"}
server = {"topic.prefix": "p-{u}", "database.hostname": "host"}
paths = {"account": "first", "paths": "left,right"}

QUICK = (
    Case("another file", FILE, file_a, ("file={d}/b.txt",), orphaned=(A,), begun=(B,)),
    Case("a moved file", FILE, file_a, ("file={d}/b.txt", CARRY), carried=(A,)),
    Case(
        "an older file",
        FILE,
        file_a,
        ("file={d}/b.txt",),
        older=((B, {"position": 8}),),
        orphaned=(A,),
        resumed=(B,),
    ),
    Case(
        "a new name",
        FILE,
        file_a,
        renamed=True,
        begun=(A,),
        says="leaves 1 source offset of what it reads under the name",
    ),
    Case("a new name with offsets", FILE, file_a, (CARRY,), renamed=True, carried=(A,)),
    Case(
        "a topic more",
        MIRROR,
        one,
        (f"topics={two['topics']}",),
        begun=({k: X[k] if k != "topic" else "y-{u}" for k in ("cluster", "topic")},),
    ),
    Case("another alias", MIRROR, one, ("source.cluster.alias=us", CARRY), carried=(X,)),
    Case("a task less", VERIFIABLE, {"tasks.max": "2"}, ("tasks.max=1",), orphaned=({"id": 1},)),
    Case(
        "a table less",
        JDBC,
        incrementing | {"table.whitelist": "a,b"},
        ("table.whitelist=a",),
        orphaned=(TB,),
    ),
    Case(
        "another mode",
        JDBC,
        incrementing | {"table.whitelist": "a"},
        ("mode=timestamp",),
        begun=(TA,),
        says="is not used",
    ),
    Case("another prefix", MYSQL, server, ("topic.prefix=q-{u}",), orphaned=(P,), begun=(Q,)),
    Case(
        "a database more",
        SQLSERVER,
        server | {"database.names": "one"},
        ("database.names=one,two",),
        begun=(PB,),
    ),
    Case(
        "a path less",
        ACCOUNT,
        paths,
        ("paths=left",),
        orphaned=(RIGHT,),
        says="learned from the stored offsets",
    ),
    Case(
        "a page of another size",
        ACCOUNT,
        paths,
        ("page.size=5",),
        unknown=(LEFT, RIGHT),
        says="page.size",
    ),
)

MORE = (
    Case("lines of a poll", FILE, file_a, ("batch.size=10",)),
    Case("a task more that is not made", FILE, file_a, ("tasks.max=2",)),
    Case("the class by its short name", FILE, file_a, ("connector.class=FileStreamSource",)),
    Case("the same name again", FILE, file_a, again=True, resumed=(A,), says="stored before"),
    Case("a topic less", MIRROR, two, ("topics=x-{u}",), orphaned=(Y,)),
    Case(
        "an alias without offsets",
        MIRROR,
        one,
        ("source.cluster.alias=us",),
        orphaned=(X,),
        begun=(US,),
    ),
    Case(
        "an older topic",
        MIRROR,
        one,
        (f"topics={two['topics']}",),
        older=((Y, {"offset": 1}),),
        resumed=(Y,),
    ),
    Case(
        "a pattern of topics",
        MIRROR,
        one,
        ("topics=[xy]-{u}",),
        says="starts from the beginning for what else it finds: topic [xy]-",
        open=True,
    ),
    Case("two tasks", MIRROR, two, ("tasks.max=2",)),
    Case("a task more", VERIFIABLE, {"tasks.max": "1"}, ("tasks.max=2",), begun=({"id": 1},)),
    Case(
        "an older task",
        VERIFIABLE,
        {"tasks.max": "1"},
        ("tasks.max=2",),
        older=(({"id": 1}, {"seqno": 41}),),
        resumed=({"id": 1},),
    ),
    Case("another pace", VERIFIABLE, {"tasks.max": "1"}, ("throughput=2",)),
    Case(
        "a table more",
        JDBC,
        incrementing | {"table.whitelist": "a"},
        ("table.whitelist=a,b",),
        begun=({"table": "b"},),
    ),
    Case(
        "a table by its whole name",
        JDBC,
        incrementing | {"table.whitelist": "a"},
        ("table.whitelist=db.a,db.b",),
        begun=({"table": "db.b"},),
    ),
    Case(
        "a table that is left out",
        JDBC,
        incrementing,
        ("table.blacklist=db.b",),
        orphaned=(TB,),
        open=True,
    ),
    Case(
        "another pattern",
        JDBC,
        incrementing | {"table.include.list": r"db\..*"},
        (r"table.include.list=db\.[ab]",),
        orphaned=(TC,),
        open=True,
    ),
    Case(
        "a wider pattern",
        JDBC,
        incrementing | {"table.include.list": "db.a"},
        (r"table.include.list=db\..*",),
        says=r"table db\..*",
        open=True,
    ),
    Case(
        "a pattern that leaves out",
        JDBC,
        incrementing | {"table.include.list": "db.*"},
        ("table.exclude.list=db.[bc]",),
        orphaned=(TB, TC),
        open=True,
    ),
    Case(
        "all of it each time",
        JDBC,
        incrementing | {"table.whitelist": "a"},
        ("mode=bulk",),
        orphaned=(TA,),
    ),
    Case(
        "from an older offset",
        JDBC,
        {"mode": "bulk", "table.whitelist": "a"},
        ("mode=incrementing",),
        older=((TA, {"incrementing": 4}),),
        resumed=(TA,),
    ),
    Case(
        "one column more",
        JDBC,
        {"mode": "timestamp", "table.whitelist": "a"},
        ("mode=timestamp+incrementing",),
    ),
    Case(
        "a query in place of a table",
        JDBC,
        incrementing | {"table.whitelist": "a"},
        ("table.whitelist-", "query=select 1"),
        orphaned=(TA,),
        begun=(QUERY,),
    ),
    Case(
        "another query",
        JDBC,
        incrementing | {"query": "select 1"},
        ("query=select 2",),
        says="keeps its offsets although query changes",
    ),
    Case("another pause", JDBC, incrementing | {"table.whitelist": "a"}, ("poll.interval.ms=9",)),
    Case(
        "an older table",
        JDBC,
        incrementing | {"table.whitelist": "a"},
        ("table.whitelist=b",),
        older=((TB, {"incrementing": 4}),),
        orphaned=(TA,),
        resumed=(TB,),
    ),
    Case("another name of the server", MYSQL, server, ("topic.prefix=q-{u}", CARRY), carried=(P,)),
    Case(
        "an older prefix",
        MYSQL,
        server,
        ("topic.prefix=q-{u}",),
        older=((Q, {"position": 4}),),
        orphaned=(P,),
        resumed=(Q,),
    ),
    Case("another snapshot", MYSQL, server, ("snapshot.mode=never",)),
    Case(
        "another host",
        MYSQL,
        server,
        ("database.hostname=other",),
        says="although database.hostname changes",
    ),
    Case("a second reader", MYSQL, server, renamed=True, begun=(P,), says="leaves 1 source offset"),
    Case(
        "a database less",
        SQLSERVER,
        server | {"database.names": "one,two"},
        ("database.names=two",),
        orphaned=(PA,),
    ),
    Case(
        "two databases of another prefix",
        SQLSERVER,
        server | {"database.names": "one,two"},
        ("topic.prefix=q-{u}",),
        orphaned=(PA, PB),
        begun=(QA, QB),
    ),
    Case(
        "two databases that are renamed",
        SQLSERVER,
        server | {"database.names": "one,two"},
        ("topic.prefix=q-{u}", CARRY),
        carried=(PA, PB),
    ),
    Case(
        "an older database",
        SQLSERVER,
        server | {"database.names": "one"},
        ("database.names=two",),
        older=((PB, {"position": 4}),),
        orphaned=(PA,),
        resumed=(PB,),
    ),
    Case(
        "a path more",
        ACCOUNT,
        paths | {"paths": "left"},
        ("paths=left,right",),
        begun=({"path": "right"},),
    ),
    Case(
        "another account",
        ACCOUNT,
        paths | {"paths": "left"},
        ("account=second",),
        orphaned=(LEFT,),
        begun=(SECOND,),
    ),
    Case(
        "an account that is renamed",
        ACCOUNT,
        paths | {"paths": "left"},
        ("account=second", CARRY),
        carried=(LEFT,),
    ),
    Case("two tasks at most", ACCOUNT, paths, ("tasks.max=2",)),
    Case(
        "an older path",
        ACCOUNT,
        paths,
        ("paths=left,former",),
        older=((FORMER, {"position": 4}),),
        orphaned=(RIGHT,),
        resumed=(FORMER,),
    ),
)
