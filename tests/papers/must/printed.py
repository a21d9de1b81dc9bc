"""The numbers that this paper prints."""

from __future__ import annotations

from dpsub.reproduce import published


def printed_cells(artefact: str, *columns: str) -> list[tuple[dict[str, str], str, str, str]]:
    """Return (fields of the row, column, printed text, errata) of the printed numbers in these
    columns."""
    frame = published.load("must", artefact)
    keys = published.key_names(frame)
    return [
        ({key: row[key] for key in keys if row[key]}, row["column"], row["printed"], row["erratum"])
        for row in frame[frame["column"].isin(columns)].to_dict("records")
    ]
