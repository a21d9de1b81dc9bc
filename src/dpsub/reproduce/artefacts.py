"""Registry of the tables, figures and claims of the papers."""

from __future__ import annotations

from dpsub.registry import Registry
from dpsub.reproduce.artefact import Artefact, OutputDirs, build, printed_rows, values_frame


def _identifier(member: type) -> str | None:
    name = member.__dict__.get("name")
    return f"{member.paper}/{name}" if isinstance(name, str) else None  # type: ignore[attr-defined]


REGISTRY: Registry[Artefact] = Registry(
    "dpsub.papers",
    Artefact,
    "artefact",
    inside=("tables", "figures", "claims", "artefacts"),
    key=_identifier,
)

__all__ = ["REGISTRY", "Artefact", "OutputDirs", "build", "printed_rows", "values_frame"]
