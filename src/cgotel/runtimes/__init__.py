"""Supervisors as witnesses: what started, what ended, what was asked, how probes went."""
