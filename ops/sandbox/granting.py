"""The ACLs that a secured sandbox begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.sandbox.security import grants

_PATIENCE = 60.0


def grant(client: Mapping[str, Any]) -> None:
    """Make the ACLs of ``security.grants`` as the super user that ``client`` is. Raises ConnectctlError."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    wanted = [
        AclBinding(ResourceType[kind], name, literal, principal, "*", AclOperation[operation], allow)
        for principal, kind, name, operation in grants()
    ]
    try:
        admin = AdminClient({**client, "log_level": 0})
        for future in admin.create_acls(wanted, request_timeout=_PATIENCE).values():
            future.result()
    except KafkaException as e:
        raise ConnectctlError("Could not create the ACLs of the sandbox", why=e.args[0].str()) from e
