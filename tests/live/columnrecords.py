"""Records of every codec for a topic whose columns are read."""

from __future__ import annotations

from confluent_kafka import Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill(bootstrap: str, name: str) -> None:
    """A transaction of each codec that is committed, one that is aborted, and records of nobody, in
    turn.
    """
    client = {"bootstrap.servers": bootstrap, "batch.size": 2_000, "linger.ms": 50}
    writers = [
        Producer(client | {"transactional.id": f"{name}-{c}", "compression.type": c})
        for c in CODECS
    ]
    plain = Producer(client)
    for writer in writers:
        writer.init_transactions(120)
    for turn in range(4):
        for number, writer in enumerate(writers):
            writer.begin_transaction()
            for n in range(40):
                key, value = (
                    (None, b"%d" % n)[n % 2],
                    (b"value %d " % n) * (n % 7) if n % 9 else None,
                )
                writer.produce(
                    name, value, key, partition=n % 2, headers=[("h", b"x"), ("n", None)][: n % 3]
                )
            plain.produce(name, b"beside", partition=turn % 2)
            plain.flush()
            if (turn + number) % 3:
                writer.commit_transaction(30)
            else:
                writer.flush()
                writer.abort_transaction(30)
