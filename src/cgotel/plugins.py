"""Finds plugins, registers what they offer, and lets none of them stop the others.

pluggy isolates nothing: one implementation that raises loses the results of all, one entry point
that cannot be imported ends the loading. So every step here is taken for one plugin at a time.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import Any, get_args

import pluggy

from cgotel import builtin, hookspecs
from cgotel.contract import Collector, CollectorSettings, Output, Settings, Watcher, WatcherSettings
from cgotel.restarts.rule import Rule
from cgotel.restarts.verdict import Cause

GROUP = "cgotel"
"""The entry-point group of plugins."""

RESCUE = "CGOTEL_PLUGINS"
"""Set to ``none`` to load built-ins only: a broken plugin must not lock the user out."""


DISABLED = "disabled in the configuration"


@dataclass(slots=True)
class Plugin:
    """One plugin: where it comes from, what it offers, what went wrong with it."""

    name: str
    origin: str
    offers: list[str] = field(default_factory=list)
    fault: str = ""

    @property
    def failed(self) -> bool:
        """Whether it is missing though nobody asked for that."""
        return self.fault not in ("", DISABLED)


@dataclass(slots=True)
class Registry:
    """All that plugins offer, by name."""

    plugins: list[Plugin] = field(default_factory=list)
    collectors: dict[str, type[Collector]] = field(default_factory=dict)
    watchers: dict[str, type[Watcher]] = field(default_factory=dict)
    outputs: dict[str, type[Output]] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    unknown: tuple[str, ...] = ()
    """Names that are to be disabled and are no plugin's."""

    def faults(self) -> Iterator[str]:
        """A line for each plugin that failed, and one for all names that are no plugin's."""
        for plugin in self.plugins:
            if plugin.failed:
                yield f"plugin {plugin.name} ({plugin.origin}): {plugin.fault}"
        if self.unknown:
            yield self.misnamed()

    def misnamed(self) -> str:
        """The line for names that are no plugin's, with those that are."""
        names, known = ", ".join(self.unknown), ", ".join(plugin.name for plugin in self.plugins)
        return f"[plugins] disabled: no plugin is called {names}; known: {known}"


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    origin: str
    load: Callable[[], Any]


def load(disabled: Iterable[str] = (), environ: Mapping[str, str] = os.environ) -> Registry:
    """Load the built-ins, then the installed plugins by name. Never raises for a plugin's sake."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    registry = Registry()
    off = frozenset(disabled)
    for candidate in _candidates(environ):
        plugin = Plugin(candidate.name, candidate.origin)
        registry.plugins.append(plugin)
        if candidate.name in off:
            plugin.fault = DISABLED
            continue
        try:
            _register(manager, candidate)
            _collect(manager, plugin, registry)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            plugin.fault = f"{type(error).__name__}: {error}"
    if not _rescued(environ):
        registry.unknown = tuple(sorted(off - {plugin.name for plugin in registry.plugins}))
    return registry


def _rescued(environ: Mapping[str, str]) -> bool:
    return environ.get(RESCUE, "").lower() == "none"


def _candidates(environ: Mapping[str, str]) -> Iterator[_Candidate]:
    for module in builtin.MODULES:
        name = module.removeprefix("cgotel.")
        yield _Candidate(name, "built-in", partial(importlib.import_module, module))
    if _rescued(environ):
        return
    yield from sorted(_installed(), key=lambda candidate: candidate.name)


def _installed() -> list[_Candidate]:
    """The entry points of all distributions; one whose list cannot be read hides no other's."""
    try:
        return [_candidate(entry) for entry in entry_points(group=GROUP)]
    except Exception:  # noqa: BLE001 - importlib.metadata parses files that anybody may have written
        return [candidate for dist in distributions() for candidate in _of_distribution(dist)]


def _of_distribution(dist: Distribution) -> list[_Candidate]:
    try:
        return [_candidate(entry) for entry in dist.entry_points.select(group=GROUP)]
    except Exception as error:  # noqa: BLE001 - likewise
        return [_Candidate(str(dist.name), "its entry_points.txt", partial(_raise, error))]


def _raise(error: Exception) -> Any:
    raise error


def _candidate(entry: EntryPoint) -> _Candidate:
    return _Candidate(entry.name, _distribution(entry), entry.load)


def _distribution(entry: EntryPoint) -> str:
    dist = entry.dist
    return f"{dist.name} {dist.version}" if dist is not None else entry.value


def _register(manager: pluggy.PluginManager, candidate: _Candidate) -> None:
    module = candidate.load()
    try:
        manager.register(module, candidate.name)
        _refuse_unknown_hooks(manager)
    except Exception:
        if manager.has_plugin(candidate.name):
            manager.unregister(name=candidate.name)
        raise


def _refuse_unknown_hooks(manager: pluggy.PluginManager) -> None:
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        reason = str(error).splitlines()[-1].strip()
        raise LookupError(f"{reason}: it needs a newer cgotel") from error


def _collect(manager: pluggy.PluginManager, plugin: Plugin, registry: Registry) -> None:
    """Ask one plugin for its classes; refuse what is not one, and a name that is taken."""
    kinds: tuple[tuple[str, type[Any], type[Any], dict[str, Any]], ...] = (
        ("collector", Collector, CollectorSettings, registry.collectors),
        ("watcher", Watcher, WatcherSettings, registry.watchers),
        ("output", Output, Settings, registry.outputs),
    )
    for kind, base, settings, known in kinds:
        for hook in getattr(manager.hook, f"cgotel_{kind}s").get_hookimpls():
            if hook.plugin_name != plugin.name:
                continue
            for offered in hook.function():
                _refuse_config(offered, settings)
                _add(kind, base, known, offered)
                plugin.offers.append(f"{kind} {offered.name}")
    for hook in manager.hook.cgotel_rules.get_hookimpls():
        if hook.plugin_name == plugin.name:
            rules = _sound_rules(hook.function())
            registry.rules += rules
            plugin.offers += [f"rule {rule.cause} ({rule.name})" for rule in rules]


def _sound_rules(offered: Any) -> list[Rule]:
    for rule in offered:
        if not isinstance(rule, Rule):
            raise TypeError(f"cgotel_rules must return rules, got {rule!r}")
        if not isinstance(rule.rank, int | float):
            raise TypeError(f"rule {rule.name!r}: its rank must be a number, got {rule.rank!r}")
        if rule.cause not in get_args(Cause):
            allowed = ", ".join(get_args(Cause))
            raise ValueError(f"rule {rule.name!r}: no cause {rule.cause!r}; allowed: {allowed}")
    return list(offered)


def _refuse_config(offered: object, settings: type[Any]) -> None:
    config = getattr(offered, "Config", settings)
    if not (isinstance(config, type) and issubclass(config, settings)):
        raise TypeError(f"its Config must be a subclass of {settings.__name__}, got {config!r}")


def _add(kind: str, base: type[Any], known: dict[str, Any], offered: object) -> None:
    if not (isinstance(offered, type) and issubclass(offered, base)):
        raise TypeError(f"cgotel_{kind}s must return subclasses of {base.__name__}, got {offered!r}")
    name = getattr(offered, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"{offered.__name__} has no name")
    if name in known:
        raise ValueError(f"{kind} {name!r} is offered twice: also by {known[name].__module__}")
    known[name] = offered
