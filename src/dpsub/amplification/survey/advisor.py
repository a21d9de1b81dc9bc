"""Compare sampling designs on a frame: privacy, sample size, variance of the estimated total.

The frame is read from a CSV file, and every fault is reported in one sentence; texts of the file
are never interpreted. Variances are those of the Horvitz-Thompson estimator over the design.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpsub import checks, sampling
from dpsub.amplification.survey import clusters, rates, unequal
from dpsub.amplification.survey.sizes import (
    random_size_lower,
    random_size_upper,
    rounding_coupled,
    rounding_exact,
    rounding_size_aware,
)
from dpsub.errors import ArgumentError, DataError, DpsubError, UnsupportedError
from dpsub.sampling import Frame, FrameSampler, Sampler, allocation
from dpsub.sampling.allocation import exact_rate, log_normal_sizes, rounded_sizes

COLUMNS = ("stratum", "cluster", "size")
MOST_ROWS = 2_000_000
# Largest size or value: their squares, summed over all records, must be finite.
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class FrameTable:
    """The records of a file.

    Labels of strata and clusters are numbered in the order of their first appearance.
    """

    frame: Frame
    values: np.ndarray  # the study variable, shape (n,)
    stratum_names: tuple[str, ...]  # as they stand in the file
    # wanted sample size of each stratum, where the file has that column
    allocation: tuple[int, ...] | None


def read_frame(path: Path, *, value: str = "size") -> FrameTable:
    """Return the frame in a CSV file with the columns stratum, cluster and size, and optionally
    allocation.

    `value` names the column of the study variable, whose total is estimated. DataError if the file
    can't be read, a column is missing or comes twice, a value is missing or no number, a size or
    study value is negative or beyond 1e+-100, or the allocation of a stratum is contradictory or
    larger than it.
    """
    rows = _rows(path)
    if not rows:
        raise DataError(f"a frame must be a CSV file in UTF-8, got {str(path)!r}: no columns")
    heads = [name.strip() for name in rows[0]]
    needed = tuple(dict.fromkeys((*COLUMNS, value)))
    for name in (*needed, "allocation"):
        if heads.count(name) > 1:
            raise DataError(
                f"a frame must have one column {name!r}, got {heads.count(name)}; rename the others"
            )
    for name in needed:
        if name not in heads:
            raise DataError(
                f"a frame must have the column {name!r}, got {_shown(', '.join(heads))}; add it"
            )
    if not 2 <= len(rows) - 1 <= MOST_ROWS:
        raise DataError(f"a frame must have 2 to {MOST_ROWS} records, got {len(rows) - 1}")
    table = {
        name: [row[place].strip() if place < len(row) else "" for row in rows[1:]]
        for place, name in enumerate(heads)
    }
    for name in needed:
        if "" in table[name]:
            line = table[name].index("") + 2
            raise DataError(f"every record must have a {name}, got none in line {line}; fill it in")
    sizes, values = (_numbers(name, table[name]) for name in ("size", value))
    stratum_names, strata = _numbered(table["stratum"])
    frame = Frame(len(sizes), strata=strata, clusters=_numbered(table["cluster"])[1], sizes=sizes)
    wanted = None
    if "allocation" in heads:
        wanted = _allocation(table["allocation"], frame, stratum_names)
    return FrameTable(frame, values, stratum_names, wanted)


def _rows(path: Path) -> list[list[str]]:
    """The lines of a CSV file that are not blank, the heads first."""
    rows: list[list[str]] = []
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            for row in (reader := csv.reader(file, skipinitialspace=True, strict=True)):
                if row not in ([], [""]):
                    rows.append(row)
                if len(row) > len(rows[0] if rows else row):
                    raise csv.Error(
                        f"Expected {len(rows[0])} fields in line {reader.line_num}, saw {len(row)}"
                    )
                if len(rows) > MOST_ROWS + 1:
                    break
    except FileNotFoundError:
        raise DataError(
            f"a frame must be in a file, got no {str(path)!r}; check the path"
        ) from None
    # a path with a NUL is a ValueError
    except (OSError, EOFError, ValueError, csv.Error) as problem:
        reason = " ".join(str(problem).split())
        raise DataError(
            f"a frame must be a CSV file in UTF-8, got {str(path)!r}: {reason}"
        ) from None
    return rows


def _numbered(labels: list[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """The distinct labels in the order of first appearance, and the label number of each record."""
    numbers: dict[str, int] = {}
    of_records = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    return tuple(numbers), of_records


def _number(text: str) -> float:
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _numbers(name: str, texts: list[str]) -> np.ndarray:
    numbers = np.array([_number(text) for text in texts])
    extreme = (numbers > _LARGEST) | ((numbers > 0) & (numbers < 1 / _LARGEST))
    for bad, rule, way_out in (
        (~np.isfinite(numbers), "be a number", "mend it"),
        (numbers < 0, "not be negative", "mend it"),
        (extreme, f"be 0 or lie in {1 / _LARGEST:g}..{_LARGEST:g}", "use another unit"),
    ):
        if bad.any():
            line = int(bad.argmax())
            got = _shown(texts[line]) if rule == "be a number" else f"{numbers[line]:g}"
            raise DataError(f"{name} must {rule}, got {got} in line {line + 2}; {way_out}")
    return numbers


def _allocation(texts: list[str], frame: Frame, names: tuple[str, ...]) -> tuple[int, ...]:
    wanted = _numbers("allocation", texts)
    allocated = []
    for stratum, held in enumerate(frame.stratum_sizes.tolist()):
        own = np.unique(wanted[frame.needed("strata") == stratum])
        name = _shown(names[stratum])
        if len(own) > 1 or not own[0].is_integer() or own[0] < 1:
            raise DataError(
                "allocation must be one whole number of at least 1 for all records of "
                f"stratum {name}"
            )
        if own[0] > held:
            got = f"{held} records and {own[0]:g} to draw in stratum {name}"
            raise DataError(f"a stratum must be at least as large as its allocation, got {got}")
        allocated.append(int(own[0]))
    return tuple(allocated)


def _shown(text: str) -> str:
    """Return a text of the file, quoted and shortened: it is only ever shown."""
    return repr(text if len(text) <= 40 else text[:39] + "…")


def variance_simple(y: np.ndarray, m: int) -> float:
    """Return N^2 (1 - m/N) S^2/m for a simple random sample of m of N; infinite for m = 0, 0 for a
    census."""
    n = len(y)
    if m >= n:
        return 0.0
    return n * n * (1 - m / n) * float(y.var(ddof=1)) / m if m else math.inf


def variance_random_size(y: np.ndarray, sizes: Mapping[int, float]) -> float:
    """Return the variance of sum(y in S) N / E[m] for samples without replacement of a random size
    m.

    E[m (1 - m/N)] S^2 (N/E[m])^2 within sizes, Var(m) mean(y)^2 (N/E[m])^2 between them.
    """
    n, (mean, variance) = len(y), _moments(sizes)
    if mean == 0:
        return math.inf
    spread = float(y.var(ddof=1)) if n > 1 else 0.0
    within = math.fsum(p * m * (1 - m / n) for m, p in sizes.items()) * spread
    return (n / mean) ** 2 * (within + variance * float(y.mean()) ** 2)


def _moments(sizes: Mapping[int, float]) -> tuple[float, float]:
    """Mean and variance of a random size."""
    mean = math.fsum(m * p for m, p in sizes.items())
    return mean, math.fsum(p * (m - mean) ** 2 for m, p in sizes.items())


def variance_clusters(
    y: np.ndarray, clusters: np.ndarray, drawn: int, second_stage: float
) -> float:
    """Return the variance between the totals t of the k clusters plus that within them.

    It is k^2 (1 - l/k) S_t^2/l + (k/l)(1/r - 1) sum y^2.
    """
    totals = np.bincount(clusters, weights=y)
    squares = float((y * y).sum())
    within = len(totals) / drawn * (1 / second_stage - 1) * squares
    return variance_simple(totals, drawn) + within


def variance_largest_entropy(y: np.ndarray, pi: np.ndarray) -> float:
    """Return Hajek's approximation sum b (y/pi - B)^2 for conditional Poisson samples.

    b = pi (1 - pi) n'/(n' - 1), where n' is the number of units that are not certain, and B is the
    b-weighted mean of y/pi. It is exact for simple random samples.
    """
    open_units = pi < 1
    p, z = pi[open_units], y[open_units] / pi[open_units]
    if len(p) < 2:
        return 0.0
    b = p * (1 - p) * len(p) / (len(p) - 1)
    mean = (b * z).sum() / b.sum()
    variance = float((b * (z - mean) ** 2).sum())
    # Where y is proportional to size the variance is 0 up to rounding.
    return variance if variance > 1e-20 * float(y.sum()) ** 2 else 0.0


def variance_one_cluster(y: np.ndarray, clusters: np.ndarray) -> float:
    """Return sum pi (t/pi - Y)^2 for one cluster, drawn with pi proportional to its records."""
    totals, counts = np.bincount(clusters, weights=y), np.bincount(clusters)
    pi = counts / counts.sum()
    return float((pi * (totals / pi - y.sum()) ** 2).sum())


def variance_systematic(y: np.ndarray, step: int) -> float:
    """Return the variance of `step` times the sample total over all starts."""
    totals = np.array([y[start::step].sum() for start in range(step)])
    return float(((step * totals - y.sum()) ** 2).mean())


def variance_stratified(y: np.ndarray, strata: np.ndarray, drawn: Sequence[int]) -> float:
    """Return the sum of `variance_simple` over the strata."""
    return math.fsum(variance_simple(y[strata == h], m) for h, m in enumerate(drawn))


Losses = Callable[[float], tuple[float, float, float]]
"""Lower, upper and exact loss at an epsilon."""


@dataclass(frozen=True)
class DesignAdvice:
    """One design on one frame; ``advice.sampler.draw(table.frame, rng)`` draws it. Losses epsilon'
    are in nats.

    `upper` holds for every mechanism that is epsilon-DP on samples under add_remove and under
    substitute, such as a noisy total of values in [0, B]; infinite where nothing is guaranteed.
    `lower` and `exact` are over all mechanisms that are epsilon-DP under the relation of the row;
    NaN where unknown.
    """

    design: str
    sampler: Sampler | FrameSampler
    relation: str  # what may change in the population for the guarantee
    lower: float
    upper: float
    exact: float
    size_mean: float  # of the number of records drawn
    size_sd: float
    sampling: float  # variance of the estimated total without noise
    # variance of the Laplace noise at epsilon on the sample: 2 (B max weight / epsilon)^2
    noise: float
    # epsilon on the sample that `upper` allows when epsilon is the promise to the population; 0 if
    # none
    base: float
    noise_at_target: float  # variance of the noise at `base`
    note: str  # conditions

    @property
    def total(self) -> float:
        """Variance of the estimated total with the noise at epsilon on the sample."""
        return self.sampling + self.noise

    @property
    def total_at_target(self) -> float:
        """Variance with the noise that a promise of epsilon to the population needs."""
        return self.sampling + self.noise_at_target


def advise(
    table: FrameTable, *, rate: object, epsilon: float, upper_limit: float | None = None
) -> tuple[list[DesignAdvice], list[str]]:
    """Return the advice for all designs that the frame allows, and the reasons why others are left
    out.

    Parameters
    ----------
    rate : share of the records to draw, an exact rational number in (0, 1); the sample must have at
        least one record.
    epsilon : of the mechanism on the sample, and in `base` of the guarantee for the population; at
        most 20.
    upper_limit : public limit B of the study variable; by default its largest value, which is then
        assumed public.

    Raises
    ------
    ArgumentError, UnsupportedError
        If the rate or epsilon is out of range, or a value exceeds the limit; if rate times the
        records is below 1.
    """
    share, n = exact_rate(rate), table.frame.n
    epsilon = checks.real("epsilon", epsilon, above=0, at_most=20)
    if share == 1:
        raise ArgumentError(
            "rate must be below 1 for sampling, got 1; a census leaves epsilon unchanged"
        )
    if share * n < 1:
        wanted = float(share * n)
        raise UnsupportedError(
            f"rate times the number of records must be at least 1, got {wanted:g}; raise the rate"
        )
    largest = float(table.values.max())
    limit = largest if upper_limit is None else checks.real("upper_limit", upper_limit, above=0)
    if limit < largest:
        raise ArgumentError(
            f"upper_limit must be at least the largest value = {largest:g}, got "
            f"upper_limit = {limit:g}"
        )
    advisor = _Advisor(table, share, epsilon, limit)
    advice, left_out = [], []
    for part in (
        advisor.simple,
        advisor.rounded,
        advisor.clustered,
        advisor.by_size,
        advisor.ordered,
        advisor.strata,
    ):
        try:
            advice += list(part())
        except DpsubError as reason:
            left_out.append(f"{part.__name__}: {reason}")
    return advice, left_out


def _exactly(rate: float) -> Losses:
    return lambda epsilon: (rates.amplified(rate, epsilon),) * 3


class _Advisor:
    def __init__(self, table: FrameTable, share: Fraction, epsilon: float, limit: float) -> None:
        self.table, self.share, self.epsilon, self.limit = table, share, epsilon, limit
        self.y, self.n = table.values, table.frame.n
        self.m = max(rounded_sizes(share, self.n, "half_up"))

    def _row(
        self,
        design: str,
        sampler: Sampler | FrameSampler,
        relation: str,
        losses: Losses,
        sizes: tuple[float, float],
        variance: float,
        weight: float,
        note: str = "",
        upper_of: Callable[[float], float] | None = None,
    ) -> DesignAdvice:
        lower, upper, exact = losses(self.epsilon)
        bound = upper_of or (lambda epsilon: losses(epsilon)[1])
        base = _base(bound, self.epsilon) if math.isfinite(upper) else 0.0
        scales = [self.limit * weight / e if e > 0 else math.inf for e in (self.epsilon, base)]
        # A product that overflows is infinite; a power would raise an error.
        noise = [2 * scale * scale for scale in scales]
        return DesignAdvice(
            design,
            sampler,
            relation,
            lower,
            upper,
            exact,
            *sizes,
            variance,
            noise[0],
            base,
            noise[1],
            note,
        )

    def simple(self) -> Iterator[DesignAdvice]:
        """Simple random samples, Poisson samples, random sizes."""
        q, n, m = self.m / self.n, self.n, self.m
        yield self._row(
            "simple random",
            sampling.Wor(m),
            "substitute",
            _exactly(q),
            (m, 0.0),
            variance_simple(self.y, m),
            1 / q,
        )
        yield self._row(
            "Poisson",
            sampling.Poisson(q),
            "add_remove",
            _exactly(q),
            (m, math.sqrt(m * (1 - q))),
            float(((1 / q - 1) * self.y * self.y).sum()),
            1 / q,
        )
        spread = max(1.0, math.sqrt(m))
        law = log_normal_sizes(n, m, spread)
        mean = float(np.arange(n + 1) @ np.exp(law))
        chances = {size: float(p) for size, p in enumerate(np.exp(law)) if p > 0}
        deviation = math.sqrt(math.fsum(p * (size - mean) ** 2 for size, p in chances.items()))

        def losses(epsilon: float) -> tuple[float, float, float]:
            return (
                random_size_lower(law, epsilon, factor=1),
                random_size_upper(law, epsilon, factor=1),
                math.nan,
            )

        yield self._row(
            "random size",
            sampling.RandomSize(m, spread),
            "substitute",
            losses,
            (mean, deviation),
            variance_random_size(self.y, chances),
            n / mean,
            "size normal, sd sqrt(m)",
        )

    def rounded(self) -> Iterator[DesignAdvice]:
        """A share of the records, the size rounded half up or at random."""
        for kind, note in (("half_up", "weights N/m change with the size"), ("randomised", "")):
            law = rounded_sizes(self.share, self.n, kind)
            losses, upper = self._rounded_losses([self.n], kind)
            mean, variance = _moments(law)
            yield self._row(
                f"rounded rate, {kind.replace('_', ' ')}",
                sampling.RoundedRate(self.share, kind),
                "add_remove",
                losses,
                (mean, math.sqrt(variance)),
                variance_random_size(self.y, law),
                self.n / mean,
                note,
                upper,
            )

    def _rounded_losses(
        self, strata: list[int], kind: str
    ) -> tuple[Losses, Callable[[float], float]]:
        """Worst loss over strata, and over populations of nearly their sizes."""
        # The rounded size jumps at some populations within 1 / rate of a given one.
        reach = math.ceil(1 / self.share) + 1
        near = {n for size in strata for n in range(max(1, size - reach), size + reach)}
        pairs = [
            (n, rounded_sizes(self.share, n, kind), rounded_sizes(self.share, n + 1, kind))
            for n in sorted(near)
        ]

        def upper(epsilon: float) -> float:
            if kind == "randomised":
                return max(rounding_size_aware(self.share, epsilon, n) for n, _, _ in pairs)
            return max(rounding_coupled(max(p), max(q), n, epsilon) for n, p, q in pairs)

        def losses(epsilon: float) -> tuple[float, float, float]:
            exact = max(rounding_exact(p, q, n, epsilon) for n, p, q in pairs)
            # `exact` is rounded up by less than this.
            return exact - 1e-9, upper(epsilon), exact

        return losses, upper

    def clustered(self) -> Iterator[DesignAdvice]:
        """Whole clusters, two stages, and one cluster by size."""
        labels, sizes = self.table.frame.needed("clusters"), self.table.frame.cluster_sizes.tolist()
        k = len(sizes)
        if k < 2:
            raise UnsupportedError("cluster sampling needs at least 2 clusters, got 1")
        stages = [(min(k - 1, max(1, round(self.m * k / self.n))), 1.0)]
        half = max(1, k // 2)
        if (rate := self.m / self.n * k / half) < 1:
            stages.append((half, rate))
        for drawn, rate in stages:
            design = clusters.ClusterDesign(tuple(sizes), drawn, rate)
            mean, between = drawn / k * self.n * rate, np.array(sizes, dtype=float).var(ddof=1)
            sd = math.sqrt(rate * rate * drawn * (1 - drawn / k) * between + mean * (1 - rate))
            name = f"{drawn} of {k} clusters" + ("" if rate == 1 else f", then {rate:.3g} of each")
            yield self._row(
                name,
                sampling.ClusterSample(drawn, rate),
                "add_remove, clusters fixed",
                _cluster_losses(design),
                (mean, sd),
                variance_clusters(self.y, labels, drawn, rate),
                k / drawn / rate,
            )
        mean = sum(s * s for s in sizes) / self.n
        sd = math.sqrt(max(0.0, sum(s**3 for s in sizes) / self.n - mean**2))
        yield self._row(
            "one cluster, PPS",
            sampling.PpsCluster(),
            "add_remove",
            _pps_cluster_losses(sizes),
            (mean, sd),
            variance_one_cluster(self.y, labels),
            self.n / min(sizes),
            "cluster sizes are data, and the probabilities depend on them",
        )

    def by_size(self) -> Iterator[DesignAdvice]:
        """m records with chances proportional to public sizes."""
        pi = allocation.inclusion_probabilities(self.table.frame.needed("sizes"), self.m)
        largest = float(pi.max())

        def losses(epsilon: float) -> tuple[float, float, float]:
            return (
                unequal.pps_bounds(largest, epsilon)[1],
                epsilon,
                epsilon if largest == 1 else math.nan,
            )

        yield self._row(
            "PPS, conditional Poisson",
            sampling.PpsConditionalPoisson(self.m),
            "substitute a value",
            losses,
            (self.m, 0.0),
            variance_largest_entropy(self.y, pi),
            float((1 / pi).max()),
            "sizes public; variance by Hajek's approximation",
        )

    def ordered(self) -> Iterator[DesignAdvice]:
        """Systematic samples of the file's order, and of a secret one."""
        step = round(self.n / self.m)
        if step < 2 or self.n % step:
            rule = f"the step of a systematic sample must be at least 2 and divide n = {self.n}"
            raise UnsupportedError(f"{rule}, got {step}")
        size = self.n // step

        def known(epsilon: float) -> tuple[float, float, float]:
            lower, upper = unequal.systematic_insertion(self.n, step, self.n // 2, epsilon)
            return lower, max(upper, epsilon * (2 * math.ceil(size / 2) + 1)), math.nan

        yield self._row(
            "systematic, secret order",
            sampling.Systematic(step, "random"),
            "substitute",
            _exactly(1 / step),
            (size, 0.0),
            variance_simple(self.y, size),
            step,
        )
        yield self._row(
            "systematic, known order",
            sampling.Systematic(step),
            "add_remove",
            known,
            (size, 0.0),
            variance_systematic(self.y, step),
            step,
            "an inserted record shifts all later ones",
        )

    def strata(self) -> Iterator[DesignAdvice]:
        """Proportional with randomised rounding, and public allocations."""
        labels, sizes = self.table.frame.needed("strata"), self.table.frame.stratum_sizes.tolist()
        if (smallest := float(self.share) * min(sizes)) < 1:
            raise UnsupportedError(
                f"rate times the records of a stratum must be at least 1, got {smallest:g} in the "
                "smallest one; raise the rate or merge strata"
            )
        laws = [rounded_sizes(self.share, size, "randomised") for size in sizes]
        parts = [self.y[labels == h] for h in range(len(sizes))]
        means = [_moments(law)[0] for law in laws]
        spread = math.fsum(
            p * (m - mean) ** 2
            for law, mean in zip(laws, means, strict=True)
            for m, p in law.items()
        )
        losses, upper = self._rounded_losses(sizes, "randomised")
        yield self._row(
            "strata, proportional, randomised",
            sampling.StratifiedRate(self.share, "randomised"),
            "add_remove",
            losses,
            (sum(means), math.sqrt(spread)),
            math.fsum(variance_random_size(y, law) for y, law in zip(parts, laws, strict=True)),
            max(n / mean for n, mean in zip(sizes, means, strict=True)),
            "",
            upper,
        )
        deviations = [float(y.std(ddof=1)) if len(y) > 1 else 0.0 for y in parts]
        menu = {"proportional": allocation.proportional(sizes, self.m)}
        if any(deviations):
            menu["Neyman"] = allocation.neyman(sizes, deviations, self.m)
        if self.table.allocation is not None:
            menu["given"] = self.table.allocation
        for name, drawn in menu.items():
            largest = max(m / n for m, n in zip(drawn, sizes, strict=True))
            yield self._allocated(
                f"strata, {name}, public",
                drawn,
                "substitute within a stratum",
                _exactly(largest),
                "allocation from public data only",
            )
        if "Neyman" in menu:
            # An allocation computed from the data spends epsilon for every record of the samples
            # that one extreme record moves.
            change = neyman_change(parts, menu["Neyman"])
            yield self._allocated(
                "strata, Neyman, from the data",
                menu["Neyman"],
                "add_remove",
                lambda epsilon: (change * epsilon, math.inf, math.nan),
                f"one record changes the strata's samples by {change} in all",
            )

    def _allocated(
        self, design: str, drawn: tuple[int, ...], relation: str, losses: Losses, note: str
    ) -> DesignAdvice:
        frame, size = self.table.frame, (sum(drawn), 0.0)
        variance = variance_stratified(self.y, frame.needed("strata"), drawn)
        weight = max(n / m for m, n in zip(drawn, frame.stratum_sizes.tolist(), strict=True))
        return self._row(
            design, sampling.Stratified(drawn), relation, losses, size, variance, weight, note
        )


def _cluster_losses(design: clusters.ClusterDesign) -> Losses:
    affordable = len(set(design.sizes)) * len(design.sizes) * design.drawn <= 2_000_000

    def losses(epsilon: float) -> tuple[float, float, float]:
        upper = design.worst(epsilon, "upper")
        if design.second_stage < 1:
            return math.nan, upper, math.nan
        if not affordable:
            return design.worst(epsilon, "lower"), upper, math.nan
        exact = design.worst(epsilon, "exact")
        return exact, min(upper, exact), exact

    return losses


def _pps_cluster_losses(sizes: list[int]) -> Losses:
    chosen = [sizes.index(size) for size in sorted(set(sizes))]
    # Removing a record is adding it to the population with one record fewer in that cluster.
    removed = [([s - (i == c) for i, s in enumerate(sizes)], c) for c in chosen if sizes[c] > 1]
    populations = [*((sizes, c) for c in chosen), *removed]

    def losses(epsilon: float) -> tuple[float, float, float]:
        exact = max(unequal.pps_cluster(of_size, c, epsilon) for of_size, c in populations)
        return exact, exact, exact

    return losses


def neyman_change(parts: list[np.ndarray], drawn: tuple[int, ...]) -> int:
    """Return the largest L1 change of the Neyman allocation when the smallest or largest record of
    a stratum is removed.

    Other records may change it more: it is a lower bound on the sensitivity.
    """
    change = 0
    for h, y in enumerate(parts):
        extremes = sorted({int(y.argmin()), int(y.argmax())}) if len(y) > 2 else []
        for record in extremes:
            fewer = [np.delete(y, record) if i == h else other for i, other in enumerate(parts)]
            sizes = [len(part) for part in fewer]
            deviations = [float(part.std(ddof=1)) if len(part) > 1 else 0.0 for part in fewer]
            if any(deviations) and sum(sizes) >= sum(drawn):
                other = allocation.neyman(sizes, deviations, sum(drawn))
                change = max(change, sum(abs(a - b) for a, b in zip(drawn, other, strict=True)))
    return change


def _base(upper: Callable[[float], float], target: float) -> float:
    """The largest epsilon on the sample whose upper bound is at most the target, from below."""
    low, high = 0.0, target
    while upper(high) <= target and high < 500:
        low, high = high, 2 * high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if upper(middle) <= target else (low, middle)
    return low
