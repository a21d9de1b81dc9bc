"""Convert a transcription of the main paper's printed numbers into `data/published/must`.

The source folder holds one CSV a table with the fields of that table, `quantity`, `value` (text as printed), `sd`,
`digits_shown`, `ulp` and `kind`; the target gets one row a printed number in the layout of `dpsub.published`.
Statements that the paper prints in words stand in `must_statements.csv` next to this script. Run by hand:

    python workflow/scripts/convert_published.py --source DIR --target data/published/must
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from dpsub import published

SAMPLERS = {
    "none": "none", "Poisson (non-private)": "nonprivate", "Poisson": "poisson", "WOR": "wor", "WR": "wr",
    "MUST.WO": "must_wo", "MUST.OW": "must_ow", "MUST.WW": "must_ww",
}  # fmt: skip
COLUMNS = {
    "epsilon_prime": "epsilon_amplified", "delta_prime": "delta_amplified", "sigma_mu": "sigma_mean",
    "sigma_tau2": "sigma_variance", "rmse_yhat_mean": "rmse_mean", "pct_time_increase_vs_WOR": "time_increase_percent",
}  # fmt: skip
SD_COLUMNS = {"mean": "sd", "rmse_mean": "rmse_sd"}
PARAMETERS = {"mu": "mean", "tau2": "variance"}
REPLICATES = {"table5": "200", "table6": "200", "table7": "200", "table8": "1", "table9": "10000", "table10": "10000"}
INTERCHANGED = ("distinct_min", "distinct_mean")
MULTISETS = ("wr", "must_ow", "must_ww")

# What the transcription's kinds are in our vocabulary where "analytic" alone does not say it.
EXACT_CLAIMS = {"efficiency_ww", "sgd_k", "adult_inv_n", "s2_dx", "exp1_sigma_ratio", "sec31_ow_distinct"}
PREDICATES = {"exp1_cover", "exp1_bias_mu", "exp1_bias_tau2"}
CLAIM_ERRATA = {
    "efficiency_ww": ("as_printed", "E10", "ratio of distinct points less 1; the work saved is 25 %"),
    "sgd_k": ("suspect", "E10", "Section 4.2.3 states 1000 iterations"),
    "poisson_time_exp2": ("suspect", "E10", "Table 10 shows 350.00"),
    "poisson_time_exp3": ("as_printed", "E18", "Table 10 shows 6748.28"),
    "sec31_ow_distinct": ("suspect", "E14", "the number is random, at most 10; compared with its expectation"),
}


def row_of(table: str, fields: dict[str, str]) -> str:
    """Return the row key of one line of the transcription."""
    sampler = SAMPLERS[fields["scheme"]]  # as the transcription calls it
    b = {"b": float(fields["b"])} if table in ("table4", "table5") and fields["b"] else {}
    match table:
        case "table3":
            return published.row_key(
                ratio=float(fields["delta_over_sigma"]), mechanism=fields["base_mechanism"].lower(), sampler=sampler,
                epsilon=float(fields["base_epsilon"]),
            )  # fmt: skip
        case "table5":
            return published.row_key(parameter=PARAMETERS[fields["parameter"]], sampler=sampler, **b)
        case "table6" | "table7":
            level = {"epsilon_amplified": float(fields["epsilon_prime"])} if fields["epsilon_prime"] else {}
            coefficient = {"coefficient": fields["coefficient"]} if table == "table7" else {}
            return published.row_key(**level, sampler=sampler, **coefficient)
        case "table9" | "table10":
            return published.row_key(experiment=int(fields["experiment"]), sampler=sampler)
    return published.row_key(sampler=sampler, **b)


def kind_of(table: str, column: str, old: str) -> str:
    """Return our kind of a table's column."""
    if table == "table9":
        return "monte_carlo" if column == "distinct_mean" else "extreme"
    return {"analytic": "exact"}.get(old, old)


def remark(table: str, row: str, column: str) -> tuple[str, str, str]:
    """Return status, errata and note of a table's cell (errata are described in the documentation of deviations)."""
    fields = published.parse_row_key(row)
    sampler, b = fields["sampler"], fields.get("b", "")
    if column == "delta_amplified" and row.startswith("ratio=1; mechanism=gaussian; sampler=must_ww"):
        return "suspect", "E9", "repeats the row of the Laplace mechanism"
    if column in ("sigma_mean", "sigma_variance", "sigma", "sigma_times_m"):
        if b in ("10", "20"):
            return "as_printed", "E4 E5", "sensitivity over n, not m; Eq. (9) needs a base epsilon below 1"
        return "as_printed", "E4", "sensitivity over n, not m"
    if column == "delta_amplified" and table == "table6" and sampler in MULTISETS:
        return "suspect", "E3", "sensitivity C against a sigma scaled for C/n"
    if column == "delta_amplified" and table in ("table4", "table6") and sampler in ("poisson", "wor"):
        return "as_printed", "E5", "nominal delta = 1/n; the others use the exact profile"
    if table == "table5" and b == "70":
        return "as_printed", "E15", "b = 70 is absent from Table 4"
    if table == "table6" and column == "rmse_mean" and row == "epsilon_amplified=0.001; sampler=must_ow":
        return "suspect", "E8", "fits the law of WR; Table 7 implies a smaller value"
    if table in ("table6", "table7") and sampler == "must_ww":
        return "as_printed", "E6", "drawn with MUST.OW in the public code"
    if table == "table8":
        if column.startswith("delta_c"):
            return "suspect", "E2", "scale m sigma where the unit-shift pair needs m sigma / C"
        errata = "E1 E6" if sampler == "must_ww" else "E1"
        return "suspect", errata, "the label stays among the predictors"
    if row in ("experiment=2; sampler=must_ow", "experiment=2; sampler=must_ww") and column in INTERCHANGED:
        return "suspect", "E7", "minimum and mean are interchanged"
    if table == "table10" and sampler == "poisson":
        return "as_printed", "E18", "drawn by a Bernoulli loop"
    if table == "table10" and sampler == "must_wo":
        return "as_printed", "", "printed in the note under the table"
    return "as_printed", "", ""


def table_rows(table: str, source: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of one table, standard deviations as rows of their own."""
    for fields in read(source / f"{table}.csv"):
        check_digits(fields)
        row, column = row_of(table, fields), COLUMNS.get(fields["quantity"], fields["quantity"])
        kind = kind_of(table, column, fields["kind"])
        numbers = [(column, fields["value"], fields["sd"])]
        if fields["sd"]:
            numbers.append((SD_COLUMNS[column], fields["sd"], ""))
        for name, printed, spread in numbers:
            status, erratum, note = remark(table, row, name)
            if kind == "exact" and name == "delta_c_lower":
                # Clipped at 0: nothing below the round-off floor of the transform could have been told from it.
                spread = "1e-12"
            yield {
                "row": row, "column": name, "printed": printed, "kind": kind, "spread": spread, "status": status,
                "replicates": "" if kind == "exact" else REPLICATES.get(table, ""), "erratum": erratum, "note": note,
            }  # fmt: skip


def claim_rows(source: Path, statements: Path) -> Iterator[dict[str, str]]:
    """Yield the numbers printed in the text, then the statements printed in words."""
    for fields in read(source / "claims.csv"):
        check_digits(fields)
        name, quantity = fields["claim_id"], fields["quantity"]
        if name.startswith("table10_wo"):
            continue  # the same numbers stand in the rows of Table 10
        kind = {"analytic": "setting", "monte_carlo": "claim"}.get(fields["kind"], fields["kind"])
        status, erratum, note = CLAIM_ERRATA.get(name, ("as_printed", "", fields["note"]))
        if name.startswith("s8_threshold"):
            kind, status, erratum = "exact", "suspect", "E11"
            note = "as done the last grid point with delta' < delta"
        elif name.startswith("s8_crossover"):
            kind, erratum, note = "claim", "E11", "around; holds if the range of the six pairwise crossovers meets it"
        elif name in EXACT_CLAIMS:
            kind = "exact"
        elif name in PREDICATES:
            kind = "claim"
        if name in ("adult_features", "sgd_p"):
            kind = "setting"
        yield {
            "row": name, "column": quantity, "printed": fields["value"], "kind": kind, "replicates": "", "spread": "",
            "status": status, "erratum": erratum, "note": located(fields["location"], note),
        }  # fmt: skip
    for fields in read(statements):
        yield {
            "row": fields["row"], "column": "holds", "printed": fields["printed"], "kind": fields["kind"],
            "replicates": "", "spread": "", "status": fields["status"], "erratum": fields["erratum"],
            "note": located(fields["location"], fields["note"]),
        }  # fmt: skip


def located(where: str, note: str) -> str:
    """Return a note that begins with the place in the paper."""
    place = where if not where[0].isdigit() and not where.startswith("S") else f"Section {where}"
    return f"{place}: {note}" if note else place


def check_digits(fields: dict[str, str]) -> None:
    """Stop if the text of a value does not show the digits that the transcription declares.

    Raises
    ------
    SystemExit
        With one sentence.
    """
    place = published.parse_printed(fields["value"]).place
    if fields["value"] != "0" and Decimal(fields["ulp"]) != place:
        raise SystemExit(f"the last place of {fields['value']!r} must be {fields['ulp']}, got {place}; mend the source")


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV as text."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def main() -> None:
    """Write one CSV a table and one for the claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="folder of the transcription")
    parser.add_argument("--target", type=Path, required=True, help="folder to write, data/published/must")
    parser.add_argument("--statements", type=Path, default=Path(__file__).with_name("must_statements.csv"))
    options = parser.parse_args()
    tables = [f"table{number}" for number in range(3, 11)]
    content = {table: list(table_rows(table, options.source)) for table in tables}
    content["claims"] = list(claim_rows(options.source, options.statements))
    options.target.mkdir(parents=True, exist_ok=True)
    for artefact, rows in content.items():
        path = options.target / f"{artefact}.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, published.COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows({"paper": "must", "artefact": artefact, **row} for row in rows)
        print(f"{path}: {len(published.read(path))} rows")


if __name__ == "__main__":
    main()
