"""autodp: Renyi divergences, and Gaussian noise in closed form."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

START = """\
from autodp import mechanism_zoo as zoo, transformer_zoo as make
"""
RELEASE = """\
release = zoo.GaussianMechanism({noise})
"""
SAMPLED = """\
sample = make.AmplificationBySampling(PoissonSampling={poisson})
release = sample(release, {rate}, improved_bound_flag=True)
"""
# A replaced record: the package must be told that its noise is meant for that relation.
REPLACED = 'release.neighboring = "replace_one"\n'
END = "epsilon = make.Composition()([release], [{steps}]).get_approxDP({delta})"
EXACT = """\
release = zoo.ExactGaussianMechanism({noise})
epsilon = make.ComposeGaussian()([release], [{steps}]).get_approxDP({delta})"""
# It takes noise over the sensitivity: a replaced record moves the sum by up to 2 C.
ADDED, HALF = "{noise_multiplier}", "{noise_multiplier} / 2"


def gaussian(noise: str) -> str:
    return START + RELEASE.replace("{noise}", noise)


def exact(noise: str) -> str:
    return START + EXACT.replace("{noise}", noise)


def sampled(poisson: bool, rate: str) -> str:
    return SAMPLED.replace("{poisson}", str(poisson)).replace("{rate}", rate)


PACKAGE = Package(
    title="autodp",
    distribution="autodp",
    versions=("0.2.3.1",),
    not_asked={"0.2": "its Rényi accountant needs an older SciPy"},
    promise=(
        "Composes Rényi divergences of many mechanisms, and Gaussian noise without sampling "
        "exactly. It takes the noise over the sensitivity, and a rate also for samples of fixed "
        "size."
    ),
    tracker="https://github.com/yuxiangw/autodp/issues",
    accountants=(
        Accountant(
            "autodp RDP",
            UPPER,
            (
                Way(
                    ("poisson gaussian add_remove",),
                    gaussian(ADDED) + sampled(True, "{rate}") + END,
                ),
                Way(
                    ("poisson gaussian substitute",), gaussian(HALF) + sampled(True, "{rate}") + END
                ),
                Way(
                    ("wor gaussian substitute",),
                    gaussian(HALF) + REPLACED + sampled(False, "{m} / {n}") + END,
                ),
                Way(("all gaussian add_remove",), gaussian(ADDED) + END),
                Way(("all gaussian substitute",), gaussian(HALF) + END),
                Way(
                    ("all laplace add_remove",),
                    START + "release = zoo.LaplaceMechanism({noise_multiplier})\n" + END,
                ),
            ),
        ),
        Accountant(
            "autodp Gaussian",
            UPPER,
            (
                Way(("all gaussian add_remove",), exact(ADDED)),
                Way(("all gaussian substitute",), exact(HALF)),
            ),
        ),
    ),
)
