"""Questions about releases: accounts, curves, checks, searches, recommendations, selections,
ledgers and audits; and the certificates, statements and pictures made from their answers.

The methods of answers that make one call `hooks`, which is filled in here.
"""

from __future__ import annotations

from typing import Any

from dpsub.accounting.questions import hooks, words

# each is imported when it is asked for: few answers are drawn or certified


def _certificate(*arguments: Any) -> dict[str, Any]:
    from dpsub.accounting.questions.certificate import certificate_of

    return certificate_of(*arguments)


def _statement(*arguments: Any, **named: Any) -> words.Statement:
    from dpsub.accounting.questions.statement import statement_of

    return statement_of(*arguments, **named)


def _plot(*arguments: Any) -> Any:
    from dpsub.accounting.questions.plot import plot_of

    return plot_of(*arguments)


hooks.certificate, hooks.statement, hooks.plot = _certificate, _statement, _plot
