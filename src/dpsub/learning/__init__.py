"""Procedures: what is computed on samples of data, and the noise that it needs."""

from __future__ import annotations




