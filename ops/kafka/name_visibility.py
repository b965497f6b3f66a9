"""Whether a principal may see every name of a resource type, proven without knowing the principal.

An authorizer that decides by ACLs alone decides on a name by the patterns that match it. Names that
the same patterns match are decided alike. So one name for each set of patterns stands for all of
them: if each of these may be described, every name may, unlisted ones included
(``StandardAuthorizer``; ``patternType=PREFIXED``, KIP-290).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from connectctl.ops.kafka.acls import ANY, Binding, Operation, Pattern, Resource, Right
from connectctl.ops.kafka.visibility import Gap, Reason

NAMED = 5
"""The number of missing rights that are named one by one."""


def samples(
    bindings: Iterable[Binding], resource: Resource, prefixes: Sequence[str], token: str
) -> dict[str, Right]:
    """Return a name for each way in which names that begin with one of ``prefixes`` may be decided,
    and the right to see them.

    Without ``prefixes``: of all names. ``token`` is text that no pattern has, and follows a pattern
    in such a name.
    """
    starts = tuple(prefixes) or ("",)
    found = {p + token: Right(Operation.DESCRIBE, resource, p or ANY, bool(p)) for p in starts}
    for binding in bindings:
        if binding.resource is not resource or (
            binding.pattern is Pattern.LITERAL and binding.name == ANY
        ):
            continue
        if binding.name.startswith(starts):
            prefixed = binding.pattern is Pattern.PREFIXED
            name = binding.name + token if prefixed else binding.name
            found.setdefault(name, Right(Operation.DESCRIBE, resource, binding.name, prefixed))
    return found


def hidden_gaps(
    subject: str, resource: Resource, asked: Mapping[str, Right], hidden: Iterable[str]
) -> list[Gap]:
    """Return the gaps for the names ``hidden``, of those that were ``asked`` for, which may not be
    described.
    """
    rights = list(dict.fromkeys(asked[name] for name in hidden))
    if len(rights) > NAMED:
        rights = [Right(Operation.DESCRIBE, resource, ANY)]
    return [Gap(subject, Reason.NOT_AUTHORIZED, right) for right in rights]
