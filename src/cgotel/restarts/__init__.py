"""Why a run ended: pure functions over evidence, so that every verdict can be replayed."""

from cgotel.hookspecs import hookimpl
from cgotel.restarts.rule import Rule


@hookimpl
def cgotel_rules() -> list[Rule]:
    """The rules that come with cgotel."""
    from cgotel.restarts.rules import RULES

    return list(RULES)
