"""The Resource of each entity: what it is itself, on which host, and what the user says of it."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping

from cgotel.model import AttributeValue, Entity

_INSTANCE_NAMESPACE = uuid.UUID("4d63009a-8d0f-11ee-aad7-4c796ed8e320")
"""Of version 5 service.instance.id: semantic conventions, registry/attributes/service.md."""


class Resources:
    """Attributes of the host under those of the user under the entity's own.

    ``service.name`` stands on a resource where the user sets it; a container is not the service
    "cgotel". Only the agent's own entity has that name by default.
    """

    def __init__(self, host: Mapping[str, AttributeValue], user: Mapping[str, AttributeValue]) -> None:
        self._common = {**host, **user}
        identity = str(host.get("host.id") or host.get("host.name") or "")
        service = {
            "service.name": "cgotel",
            "service.instance.id": str(uuid.uuid5(_INSTANCE_NAMESPACE, identity)),
        }
        self._agent = {**service, **self._common}

    def of(self, entity: Entity) -> dict[str, AttributeValue]:
        """All resource attributes of an entity."""
        common = self._agent if entity.kind == "agent" else self._common
        return {**common, **entity.attributes}


def host(environ: Mapping[str, str] = os.environ) -> dict[str, AttributeValue]:
    """``host.name``, ``host.id`` (machine-id(5)) and ``os.type``; what cannot be read is left out.

    Honours HOST_ETC and HOST_ROOT, as Telegraf does, so that a container speaks of its host.
    """
    etc = environ.get("HOST_ETC") or f"{environ.get('HOST_ROOT', '').rstrip('/')}/etc"
    name = _first_line(f"{etc}/hostname") if etc != "/etc" else None
    attributes: dict[str, AttributeValue] = {"host.name": name or socket.gethostname(), "os.type": "linux"}
    if machine_id := _first_line(f"{etc}/machine-id"):
        attributes["host.id"] = machine_id
    return attributes


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip() or None
    except OSError:
        return None
