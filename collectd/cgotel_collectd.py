"""cgotel in collectd: limits, pressure and throttling of every cgroup, as values of collectd.

Loaded by collectd's Python plugin; see README.md beside it. At the top it does nothing but register
callbacks: an exception here, or in the config callback, would keep the whole daemon from starting,
and the module is loaded twice where `collectd -t` checks the configuration first.
"""

from __future__ import annotations

import sys
from typing import Any

import collectd

_PLUGINS: list[Any] = []


def _guarded(act: Any) -> Any:
    """What is raised goes into collectd's log, never into collectd."""

    def callback(*arguments: Any) -> None:
        try:
            act(*arguments)
        except Exception as error:  # noqa: BLE001 - nothing of ours may stop the daemon
            collectd.error(f"cgotel: {type(error).__name__}: {error}")

    return callback


def _plugin() -> Any:
    """The plugin, made at first use; None where this Python cannot load it."""
    if not _PLUGINS:
        try:
            from cgotel.collectd.plugin import Plugin
        except Exception as error:  # noqa: BLE001 - also what a package for another Python raises
            _PLUGINS.append(None)
            collectd.error(
                f"cgotel: stays off: collectd's Python {sys.version_info.major}.{sys.version_info.minor} "
                f"cannot load it: {type(error).__name__}: {error}. ModulePath must name the site-packages "
                f"of an environment of that version: `cgotel collectd-config` of that one prints it"
            )
        else:
            _PLUGINS.append(Plugin(collectd))
    return _PLUGINS[0]


def _config(block: Any) -> None:
    if (plugin := _plugin()) is not None:
        plugin.configure(block.children)


def _init() -> None:
    if (plugin := _plugin()) is not None:
        plugin.init()


def _shutdown() -> None:
    if (plugin := _plugin()) is not None:
        plugin.shutdown()


collectd.register_config(_guarded(_config))
collectd.register_init(_guarded(_init))
collectd.register_shutdown(_guarded(_shutdown))
