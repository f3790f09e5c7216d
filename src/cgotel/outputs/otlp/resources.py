"""The Resource of each entity: what it is itself, on which host, and what the user says of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from cgotel.model import AttributeValue, Entity

_INSTANCE_NAMESPACE = uuid.UUID("4d63009a-8d0f-11ee-aad7-4c796ed8e320")
"""Of version 5 service.instance.id: semantic conventions, registry/attributes/service.md."""

_OF_HOST = ("host.name", "host.id", "os.type")
"""What tells the hosts of two entities apart; the rest of a host is on its own resource."""


class Resources:
    """Attributes of the host under those of the user under the entity's own.

    But what the user calls the host (``host.name`` is a node's name in Kubernetes) it is called
    everywhere, on the host's own resource too.
    ``service.name`` stands on a resource where the user sets it; a container is not the service
    "cgotel". Only the agent's own entity has that name by default.
    """

    def __init__(self, host: Mapping[str, AttributeValue], user: Mapping[str, AttributeValue]) -> None:
        self._common = {name: host[name] for name in _OF_HOST if name in host} | dict(user)
        self._host_by_user = {name: value for name, value in user.items() if name.startswith("host.")}
        identity = str(host.get("host.id") or host.get("host.name") or "")
        service = {
            "service.name": "cgotel",
            "service.instance.id": str(uuid.uuid5(_INSTANCE_NAMESPACE, identity)),
        }
        self._agent = {**service, **self._common}

    def of(self, entity: Entity) -> dict[str, AttributeValue]:
        """All resource attributes of an entity."""
        common = self._agent if entity.kind == "agent" else self._common
        return {**common, **entity.attributes, **self._host_by_user}
