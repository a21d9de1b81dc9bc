"""Laws of how often a fixed record is in a sample: chains of stages and their laws, from exact
rationals."""

from dataclasses import dataclass
from fractions import Fraction
from math import comb, perm, sqrt

from balls import ONE, ZERO, NotCovered, Refuted, positive_part
from flint import arb, fmpq
from work import fits, spend

MOST_MARKED = 2000  # records of a group among which a sample without replacement chooses
MOST_OTHERS = 3_000_000  # records of a data set from which a cut sample is drawn


@dataclass(frozen=True)
class Stage:
    """``without`` or ``with`` replacement, of `size` slots, or ``poisson`` at `rate`; a `rate` of
    draws with replacement is the weight of the record."""

    kind: str
    size: int | None = None
    rate: Fraction | None = None


KINDS = {"wor": "without", "wr": "with"}  # as samplers of several stages name them


def ball(x: Fraction | int) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def probability(x: float, name: str) -> Fraction:
    if not 0 < x <= 1:
        raise Refuted(f"question: {name} must lie in (0, 1], got {x!r}")
    return Fraction(x)


def stages_of(sampler: dict) -> list[Stage] | None:
    """The chain of 3.5 that a sampler is, merged; None where it is none.

    A uniform subset of a uniform subset is one, and a uniform subset of independent draws is a list
    of independent draws: so a stage without replacement that follows another one only changes its
    size.
    """
    match sampler["name"]:
        case "poisson":
            chain = [("poisson", sampler["rate"])]
        case "wor":
            chain = [("without", sampler["m"])]
        case "wr":
            chain = [("with", sampler["m"])]
        case "weighted_wr":
            weight = probability(sampler["largest_weight"], "largest_weight")
            return [Stage("with", sampler["m"], weight)]
        case "must_oo":
            chain = [("without", sampler["b"]), ("without", sampler["m"])]
        case "must_ow":
            chain = [("without", sampler["b"]), ("with", sampler["m"])]
        case "must_wo":
            chain = [("with", sampler["b"]), ("without", sampler["m"])]
        case "must_ww":
            chain = [("with", sampler["b"]), ("with", sampler["m"])]
        case "multistage":
            chain = [
                (KINDS.get(stage["kind"], stage["kind"]), stage.get("size", stage.get("rate")))
                for stage in sampler["chain"]
            ]
        case _:
            return None
    merged: list[Stage] = []
    for place, (kind, size) in enumerate(chain):
        if kind == "poisson" and place == len(chain) - 1:
            merged.append(Stage(kind, rate=probability(size, "rate")))
            continue
        if kind == "poisson":
            raise NotCovered("a Poisson stage before another one")
        if kind == "without" and merged:
            if size > merged[-1].size:
                raise Refuted("question: no stage draws more different slots than there are")
            kind = merged.pop().kind
        merged.append(Stage(kind, size=size))
    return merged


@dataclass(frozen=True)
class Counts:
    """Probabilities of 0, 1, 2, ... occurrences; `rest` bounds the probability of all that are left
    out."""

    probabilities: list[arb]
    rest: arb

    @property
    def eta(self) -> arb:
        """The probability of at least one occurrence."""
        return ONE - self.probabilities[0]

    def positive(self) -> list[tuple[int, arb]]:
        return list(enumerate(self.probabilities))[1:]


def binomial(draws: int, q: Fraction, negligible: arb) -> Counts:
    """Binomial(draws, q), what is beyond the mean and together below `negligible` left out.

    p_(l+1)/p_l falls with l; where it is below 1/2 all that follows p_l is less than 2 p_(l+1).
    """
    if q == 1:
        return Counts([ZERO] * draws + [ONE], ZERO)
    spend(expected_counts(draws, q, negligible), "numbers of occurrences")
    odds = ball(q / (1 - q))
    probabilities = [ball(1 - q) ** draws]
    for hits in range(draws):
        following = probabilities[-1] * (draws - hits) / (hits + 1) * odds
        falls = (draws - hits) * odds / (hits + 1) < 0.5
        if falls and 2 * following < negligible:
            return Counts(probabilities, (2 * following).upper())
        probabilities.append(following)
    return Counts(probabilities, ZERO)


def expected_counts(draws: int, q: Fraction, negligible: arb) -> int:
    """Return about how many probabilities `binomial` lists: up to so many deviations beyond the
    mean that the rest is negligible."""
    mean = draws * float(q)
    far = 2 - 2 * float(negligible.log().mid()) if negligible > 0 else float(draws)
    return min(draws, int(mean + sqrt(mean * far) + far)) + 1


def stage_counts(stage: Stage, slots: int, marked: int, negligible: arb) -> Counts:
    """The law of the number of marked slots that one stage draws from `slots`."""
    if stage.kind == "with":
        q = Fraction(marked, slots) if stage.rate is None else min(marked * stage.rate, Fraction(1))
        return binomial(stage.size, q, negligible)
    if stage.kind == "poisson":
        return binomial(marked, stage.rate, negligible)
    if stage.size > slots:
        raise Refuted("question: no stage draws more different slots than there are")
    return hypergeometric(slots, marked, stage.size)


def hypergeometric(slots: int, marked: int, size: int) -> Counts:
    """Law of the number of marked slots that a uniform subset of this size holds.

    C(g, k) (m)_k (n - m)_(g - k) / (n)_g, (x)_k falling factorials: no number has more than g
    factors, whatever n and m are.
    """
    fits(marked, MOST_MARKED, "records of a group in samples without replacement")
    ways = perm(slots, marked)
    hits = [
        comb(marked, k) * perm(size, k) * perm(slots - size, marked - k)
        for k in range(min(marked, size) + 1)
    ]
    return Counts([ball(Fraction(way, ways)) for way in hits], ZERO)


def chain_counts(stages: list[Stage], slots: int, marked: int, negligible: arb) -> Counts:
    """The law of the number of slots of the whole chain's sample that hold a marked one."""
    first = stage_counts(stages[0], slots, marked, negligible)
    if len(stages) == 1:
        return first
    probabilities = [first.probabilities[0]]
    rest = first.rest
    for count, weight in first.positive():
        if weight.is_zero():
            continue
        spend(len(probabilities), "combinations of numbers of occurrences")
        later = chain_counts(stages[1:], stages[0].size, count, negligible)
        rest += weight * later.rest
        probabilities += [ZERO] * (len(later.probabilities) - len(probabilities))
        for hits, chance in enumerate(later.probabilities):
            probabilities[hits] += weight * chance
    return Counts(probabilities, positive_part(rest).upper())


def cut_sample(
    others: int, rate: Fraction, most: int, negligible: arb
) -> tuple[arb, arb, dict[int, arb]]:
    """Law of a cut sample (3.10): phi = P(K' >= B), the rate r of a full sample, and the law of K'
    = Binomial(others, rate)."""
    fits(others, MOST_OTHERS, "records from which a cut sample is drawn")
    spend(3 * others, "numbers of records that are drawn")
    law = {0: ball(1 - rate) ** others} if rate < 1 else {others: ONE}
    if rate < 1:
        odds = ball(rate / (1 - rate))
        for k in range(others):
            law[k + 1] = law[k] * (others - k) / (k + 1) * odds
    phi = sum((p for k, p in law.items() if k >= most), ZERO)
    kept = sum((p * ball(rate * Fraction(most, k + 1)) for k, p in law.items() if k >= most), ZERO)
    return phi, kept, law
