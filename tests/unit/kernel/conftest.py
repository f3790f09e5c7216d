"""Hypothesis without a time limit for each example: a busy machine is no fault of a parser."""

from hypothesis import settings

settings.register_profile("cgotel", deadline=None)
settings.load_profile("cgotel")
