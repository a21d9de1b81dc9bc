"""bis-mc-accountant: random allocation by Monte Carlo, verified before it is released."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import CONFIDENT

# Claims from the weakest to the strongest, as it wants its candidates; the last one that passes.
CODE = """\
from itertools import takewhile
from bis_calibration import SequentialCalibration, generate_compressed_samples_parallel as draw
law, draws = ({steps}, 1, {noise_multiplier}), (5_000_000, 1)
both = lambda e: (*draw(*law, e, *draws, 1, "forward"), *draw(*law, e, *draws, 2, "reverse"))
passes = lambda e: SequentialCalibration(e, {delta}).add_candidate(*both(e)).passed
*_, epsilon = takewhile(passes, (hundredths / 100 for hundredths in range(40, 0, -2)))"""

PACKAGE = Package(
    title="bis-mc-accountant",
    distribution="bis-mc-accountant",
    versions=("74a1143",),
    repository="https://github.com/dong-xin-ao-andy/bis-mc-accountant",
    commits={"74a1143": "74a1143e845efd6edbc291a6725eab723664e850"},
    requires=("numpy==1.26.3", "scipy==1.12.0"),
    promise=(
        "Verifies noise for random allocation under zero-out by draws, both orders of the data "
        "sets, so that calibration and release together keep the stated δ. It calibrates noise; we "
        "ask for the least ε, in steps of 0.02 from 0.4 down, that passes at the noise of the "
        "question, with five million draws a time and fixed seeds. Its guarantee is for the whole "
        "procedure with fresh draws, not for one number that passed. One question about ten steps "
        "is asked, since every draw is one of all steps."
    ),
    tracker="https://github.com/dong-xin-ao-andy/bis-mc-accountant/issues",
    accountants=(
        Accountant(
            "bis-mc-accountant",
            CONFIDENT,
            (Way(("random_allocation gaussian zero_out",), CODE),),
        ),
    ),
)
