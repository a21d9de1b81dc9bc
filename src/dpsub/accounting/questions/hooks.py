"""Hooks by which answers make certificates, statements and pictures of themselves.

The modules that make these ask further questions, so they import the answers and cannot be
imported by them. The methods `certificate`, `statement` and `plot` of an answer call the functions
named here instead; `dpsub.accounting.questions` sets them when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsub.accounting.questions.words import Statement

certificate: Callable[..., dict[str, Any]]
"""The function `certificate.certificate_of`."""
statement: Callable[..., Statement]
"""The function `statement.statement_of`."""
plot: Callable[..., Any]
"""The function `plot.plot_of`."""
