"""Artefacts of the MUST paper, one a module."""
