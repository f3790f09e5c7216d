"""The hooks: the only contract with plugins.

Each hook takes no argument and returns classes (rules: values); nothing depends on the order of
plugins. A plugin is a module named by an entry point of the group ``cgotel``, and marks its hooks
with `hookimpl`::

    from cgotel import hookimpl

    @hookimpl
    def cgotel_collectors():
        return [MyCollector]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from cgotel.contract import Collector, Output, Watcher
    from cgotel.restarts.rule import Rule

PROJECT = "cgotel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def cgotel_collectors() -> list[type[Collector]]:  # type: ignore[empty-body]
    """Collector classes offered by this plugin. Imports nothing heavy."""


@hookspec
def cgotel_outputs() -> list[type[Output]]:  # type: ignore[empty-body]
    """Output classes offered by this plugin. Imports nothing heavy."""


@hookspec
def cgotel_watchers() -> list[type[Watcher]]:  # type: ignore[empty-body]
    """Watcher classes offered by this plugin. Imports nothing heavy."""


@hookspec
def cgotel_rules() -> list[Rule]:  # type: ignore[empty-body]
    """Rules by which ends are judged, offered by this plugin; each is asked by its rank."""
