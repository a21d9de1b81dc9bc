"""Folders in which the user keeps raw files; a run looks at them before it begins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dpsub.errors import DataError

ENVIRONMENT_VARIABLE = "DPSUB_DATA"


def of_user(folder: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield the user's folders in the order in which they are looked at, with their names in
    messages: that of the environment variable ``DPSUB_DATA``, then `folder`.

    Raises
    ------
    DataError
        If the next one does not exist.
    """
    given = (
        (ENVIRONMENT_VARIABLE, os.environ.get(ENVIRONMENT_VARIABLE)),
        ("the data folder", folder),
    )
    for name, place in given:
        if place and not Path(place).is_dir():
            raise DataError(
                f"{name} must be an existing folder, got {str(place)!r}; correct or remove it"
            )
        if place:
            yield name, Path(place)
