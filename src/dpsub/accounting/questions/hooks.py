"""What answers hand out that is made above them: certificates, statements and pictures.

To make one takes further questions, so that the modules which do stand above the answers. Methods
of answers call the names below, which the package sets when it is imported: no answer imports what
stands above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsub.accounting.questions.words import Statement

certificate: Callable[..., dict[str, Any]]
"""`certificate.certificate_of`."""
statement: Callable[..., Statement]
"""`statement.statement_of`."""
plot: Callable[..., Any]
"""`plot.plot_of`."""
