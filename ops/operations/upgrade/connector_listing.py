"""The connectors of a cluster for the plan of a roll, by the judge that every command asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectctl.ops.clients.protocols import ConnectCalls, KafkaReads
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.rest_membership import NotAMember, Resolve, is_advertised
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.finding import Finding
from connectctl.ops.kafka.visibility import Gap, Observation, Partial, Reason, gap_findings, gap_of
from connectctl.ops.operations.cluster.read_once import read_once
from connectctl.ops.operations.connectors import observe as reading
from connectctl.ops.operations.connectors.observe import ConnectorListing, FactsReader

Named = Mapping[str, "str | None"]
LISTING = 10.0
"""Seconds in which one worker must list all connectors."""


def listing_for_roll(
    calls: ConnectCalls,
    kafka: KafkaReads,
    group: ConnectGroup,
    named: Named,
    urls: Sequence[str],
    silent: Sequence[str] = (),
) -> ConnectorListing | str:
    """Return the connectors by config topic, assignments and the workers at ``urls``.

    The reason instead if no worker answers, with what ``silent`` says of each.
    """
    why = "; ".join(["no worker answers", *silent])
    for number, url in enumerate(urls):
        try:
            found = reading.from_workers(calls, url=url, timeout=LISTING)
            facts = _facts(kafka, group, named)
            return reading.listing_of(
                calls, found, group, facts.seen, tuple(urls[number:]), facts.gaps
            )
        except ConnectctlError as e:
            why = str(e)
    return why


def _facts(kafka: KafkaReads, group: ConnectGroup, named: Named) -> Observation[FactsReader | None]:
    try:
        return reading.look_for_facts(read_once(kafka), group, named)
    except ConnectctlError as e:
        return Partial(None, (gap_of(e, f"config topic of {group.id}"),))


def other_servers(
    calls: ConnectCalls, group: ConnectGroup, named: Sequence[str], resolve: Resolve
) -> tuple[Finding, ...]:
    """Return a finding for each address in ``named`` at which a server answers that is not a worker
    of the group.
    """
    gaps: list[Gap] = []
    for url in named:
        if is_advertised(url, group, resolve):
            continue
        try:
            calls.get("/connectors", url=url, timeout=reading.ANSWER)
        except NotAMember as e:
            gaps.append(Gap(f"REST server {e.url}", Reason.CONTRADICTED, detail=str(e)))
        except ConnectctlError:
            continue  # it is down: a worker to be started
    return gap_findings(gaps)
