"""Why a run ended: pure functions over evidence, so that every verdict can be replayed."""
