"""The eight data sets of the importance-sampling paper as it describes them: sizes, radius, mean
squared norm."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from dpsub import checks


@dataclass(frozen=True)
class Described:
    """One data set as the paper's Section 5 and Table 1 describe it; the acceptance test of its
    preparation."""

    name: str  # ours, as in file and folder names
    title: str  # the paper's
    n_original: int  # rows before the removal of outliers
    n: int  # rows after it
    d: int  # columns
    # largest norm of the centred rows, as printed, so that the last place is known
    printed_radius: str
    printed_mean_square: str  # their mean squared norm

    @property
    def radius(self) -> float:
        return float(self.printed_radius)

    @property
    def mean_square(self) -> float:
        return float(self.printed_mean_square)

    def faults(
        self, *, n_original: int, n: int, d: int, radius: float, mean_square: float
    ) -> list[str]:
        """Return the deviations of a prepared data set from the paper's Table 1, each as "rule, got
        value"."""
        counts = (
            ("rows before the removal of outliers", self.n_original, n_original),
            ("rows after it", self.n, n),
            ("columns", self.d, d),
        )
        norms = (
            ("the largest norm", self.printed_radius, radius),
            ("the mean squared norm", self.printed_mean_square, mean_square),
        )
        return [
            f"{quantity} must be {wanted}, got {got}"
            for quantity, wanted, got in counts
            if wanted != got
        ] + [
            f"{quantity} must round to {printed}, got {value!r}"
            for quantity, printed, value in norms
            # half a unit of the second decimal, both ends included
            if abs(Decimal(repr(float(value))) - Decimal(printed)) > Decimal("0.005")
        ]


EIGHT: dict[str, Described] = {
    described.name: described
    for described in (
        Described("kdd_protein", "KDD-Protein", 145751, 142107, 74, "8020.65", "7031359.55"),
        Described("rna", "RNA", 488565, 476350, 8, "420.67", "24902.47"),
        Described("song", "Song", 515345, 502461, 90, "7507.16", "6769375.49"),
        Described("covertype", "Covertype", 581012, 566486, 54, "4489.17", "3839798.28"),
        Described("ijcnn1", "Ijcnn1", 49990, 48740, 22, "1.51", "1.26"),
        Described("pose", "Pose", 35832, 34936, 48, "2250.64", "1249739.50"),
        Described("miniboone", "MiniBooNE", 130064, 126812, 50, "2213.05", "295947.13"),
        Described("fma", "FMA", 106574, 103909, 518, "6020.23", "5838871.88"),
    )
}
"""In the paper's order; tests compare the numbers with the printed ones."""


def of(name: str) -> Described:
    """Return the description of a data set; ArgumentError if there is none of this name."""
    return EIGHT[checks.one_of("data set", name, EIGHT)]
