"""From a configuration file to collectors and outputs, ready to start."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cgotel import config, plugins
from cgotel.config import ConfigError, Configuration
from cgotel.contract import Bookmark, Collector, CollectorSettings, Output, Timeline, Watcher, WatcherSettings
from cgotel.kernel.roots import Roots
from cgotel.plugins import Registry

log = logging.getLogger(__name__)

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
)


@dataclass(frozen=True, slots=True)
class Assembly:
    """What was loaded, how it is configured, and where the kernel's trees are."""

    registry: Registry
    configuration: Configuration
    roots: Roots
    environ: Mapping[str, str]

    def collectors(self) -> list[Collector]:
        """Every enabled collector, made but not started."""
        made = []
        for name, kind in self.registry.collectors.items():
            settings = self.configuration.collectors[name]
            assert isinstance(settings, CollectorSettings)
            if settings.enabled:
                made += self._made(name, kind, settings)
        return made

    def _made(self, name: str, kind: type[Collector], settings: CollectorSettings) -> list[Collector]:
        """One collector, or none and a line of log: a plugin's may raise anything."""
        try:
            return [kind(settings, self.roots)]
        except (Exception, SystemExit) as error:  # noqa: BLE001
            log.error("collector %s is left out: %s: %s", name, type(error).__name__, error)
            return []

    def watchers(
        self, timeline: Timeline, bookmark: Callable[[str], Bookmark] = lambda name: Bookmark()
    ) -> list[Watcher]:
        """Every enabled watcher, made but not started; ``bookmark`` gives each its own."""
        made: list[Watcher] = []
        for name, kind in self.registry.watchers.items():
            settings = self.configuration.watchers[name]
            assert isinstance(settings, WatcherSettings)
            if not settings.enabled:
                continue
            try:
                made.append(kind(settings, self.roots, timeline, bookmark(name)))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
                log.error("watcher %s is left out: %s: %s", name, type(error).__name__, error)
        return made

    def outputs(self) -> list[Output]:
        """The outputs that the configuration names, else the default one; made but not started."""
        names = self.configuration.agent.outputs
        if names is None:
            names = (self._default_output(),)
        return [self._output(name) for name in names]

    def _output(self, name: str) -> Output:
        try:
            return self.registry.outputs[name](self.configuration.outputs[name])
        except (Exception, SystemExit) as error:
            raise ConfigError(f"output {name}: {type(error).__name__}: {error}") from error

    def _default_output(self) -> str:
        otlp = self.configuration.outputs.get("otlp")
        if otlp is None:
            return "console"
        endpoints = ("endpoint", "metrics_endpoint", "logs_endpoint")
        configured = any(getattr(otlp, name) for name in endpoints)
        return "otlp" if configured or any(self.environ.get(name) for name in _ENDPOINTS) else "console"


def _check_roots(environ: Mapping[str, str]) -> None:
    """A tree that is named and not there would look like a kernel without anything."""
    for variable in ("HOST_ROOT", "HOST_PROC", "HOST_SYS", "HOST_CGROUP"):
        if (named := environ.get(variable)) and not os.path.isdir(named):
            raise ConfigError(f"{variable}={named}: no such directory")


def assemble(path: str | None, environ: Mapping[str, str] = os.environ) -> Assembly:
    """Read the configuration, load the plugins, check every table. Raises `ConfigError`."""
    _check_roots(environ)
    document = config.read(path)
    disabled = document.table("plugins", config.PluginSettings).disabled
    registry = plugins.load(disabled, environ)
    checked = config.check(
        document,
        {name: kind.Config for name, kind in registry.collectors.items()},
        {name: kind.Config for name, kind in registry.watchers.items()},
        {name: kind.Config for name, kind in registry.outputs.items()},
        environ,
        complete=not any(plugin.fault for plugin in registry.plugins),
    )
    return Assembly(registry, checked, Roots.discover(environ), environ)
