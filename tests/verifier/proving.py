"""What the tests of certificates share: a certificate as a file, and what the verifier says of
it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from certificate import verify


def proved_again(certificate: dict[str, Any], folder: Path) -> tuple[list[str], int]:
    """The lines that the verifier prints, and its exit status."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(certificate, allow_nan=False), encoding="utf-8")
    lines, status = verify(str(path))
    return lines, status
