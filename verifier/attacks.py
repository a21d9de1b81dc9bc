"""Data sets of attacks: the laws of the sum of one step on D and on D', before noise is added."""

from dataclasses import dataclass
from fractions import Fraction

from balls import ONE, ZERO, NotCovered, Refuted
from flint import arb
from multiplicity import Counts, ball, binomial, chain_counts, cut_sample, probability
from question import Release
from theorems import Case
from work import fits

Weights = dict[Fraction, arb]  # how probable which noiseless value is
MOST_TURNS = 10**5  # whose sum is looked at


@dataclass(frozen=True)
class Sums:
    """A law of noiseless sums; `rest` bounds the probability of all that are left out.

    It is what the laws of counts say, and not 1 less the others: that is a ball about 0, whose
    radius is more than deep events hold. Where nothing is left out it is 0, as the probabilities
    that the balls enclose add up to 1.
    """

    weights: Weights
    rest: arb


def neighbours(case: Case) -> tuple[Fraction, Fraction, Fraction]:
    """Contributions along u of the record in D and in D', and of every other record; a record that
    is not there adds 0.

    The schema has bounded lengths by 1. Data sets that are no neighbours would have to have a
    record where the relation has none, or the other way round.
    """
    data = case.part["data"]
    gone = data["other"] is None
    mixed = isinstance(case.release.group, tuple)
    if gone != (case.adjacency == "add_remove" and not mixed):
        raise Refuted(f"data: D and D' are no neighbours under {case.adjacency}")
    other = Fraction(0) if gone else Fraction(data["other"])
    if case.adjacency == "zero_out" and other != 0:
        raise Refuted("data: under zero_out the record contributes 0 in D'")
    return Fraction(data["record"]), other, Fraction(data["filler"])


def noiseless(case: Case) -> tuple[Sums, Sums]:
    """Laws of the sum in direction u on D and on D' without its noise, up to one translation of
    both."""
    record, other, filler = neighbours(case)
    release, gone = case.release, case.part["data"]["other"] is None
    if release.name == "truncated_poisson":
        if release.group != 1:
            raise NotCovered("an attack on a group in cut samples")
        return cut_sums(case, record, other, filler, gone)
    group = release.group
    sizes = group if isinstance(group, tuple) else (group, group)
    holds_known = release.in_known_steps or release.in_one_step
    if release.name in ("deterministic", "cyclic_poisson") or holds_known:
        rate = (
            probability(release.sampler["rate"], "rate")
            if release.name == "cyclic_poisson"
            else Fraction(1)
        )
        if release.name == "deterministic":
            sizes = (1, 1)  # `spread` tells how far the group moves an epoch
        holds_all(case)
        fixed, laws = False, [binomial(size, rate, case.negligible) for size in sizes]
    else:
        stages = release.stages
        if stages is None:
            raise NotCovered(f"statistic 'sum' of {release.name}")
        fixed = stages[-1].kind != "poisson"
        slots = 1 if stages[0].kind == "poisson" else case.slots
        laws = [chain_counts(stages, slots, size, case.negligible) for size in sizes]
    # in a step that holds all records the others are known, whatever they add
    if not fixed and filler != 0 and not release.in_one_step:
        raise NotCovered("fillers in a sample of random size")
    taken = filler if fixed else Fraction(0)  # the contribution whose place an occurrence takes
    return sums_of(case, laws, taken)


def all_noiseless(case: Case) -> tuple[Sums, Sums, int]:
    """Laws of the sum of the outputs of secret groups in direction u, on D and on D' without its
    noise, and of how many steps it is."""
    release = case.release
    if release.name != "secret_cyclic_poisson":
        raise NotCovered(f"statistic 'sum of all steps' of {release.name}")
    if case.part["data"]["filler"] != 0:
        raise NotCovered("fillers in a sample of random size")
    # of very many turns of its group, the first ones
    turns = min(release.epochs, MOST_TURNS)
    rate = probability(release.sampler["rate"], "rate")
    drawn = binomial(turns, rate, case.negligible)
    return *sums_of(case, [drawn, drawn], Fraction(0)), turns * release.sampler["cycle"]


def sums_of(case: Case, laws: list[Counts], taken: Fraction) -> tuple[Sums, Sums]:
    """Laws of the sum on D and on D' from those of how often the record is in it, where each time
    it takes the place of `taken`."""
    record, other, _ = neighbours(case)
    gone = case.part["data"]["other"] is None
    P: Weights = {}
    Q: Weights = {}
    for hits, chance in enumerate(laws[0].probabilities):
        add(P, hits * (record - taken), chance)
    if gone:
        return Sums(P, laws[0].rest), Sums({Fraction(0): ONE}, ZERO)
    for hits, chance in enumerate(laws[1].probabilities):
        add(Q, hits * (other - taken), chance)
    # a record that adds nothing leaves 0 for sure, even where numbers of occurrences are left out
    if other == taken:
        return Sums(P, laws[0].rest), Sums({Fraction(0): ONE}, ZERO)
    return Sums(P, laws[0].rest), Sums(Q, laws[1].rest)


def holds_all(case: Case) -> None:
    """Refuse an attack under a cyclic schedule if none of its groups of records can hold all of the
    unit's."""
    release, size = case.release, case.release.group
    if release.name == "cyclic_poisson" and size != 1:
        most = size if release.n is None else release.n // release.sampler["cycle"]
        fits(size, most, "records of a group that are attacked in one step")


def spread(release: Release) -> arb:
    """Distance, in lengths of one record, by which what is known to be in the steps of an epoch
    moves them (F1): a record in steps that are known, or as many of g as there is room for in each
    step of m."""
    if release.in_known_steps:
        return arb(release.in_known_steps).sqrt()
    if release.name != "deterministic" or release.group == 1:
        return ONE
    most = release.sampler["m"] or release.group
    full, left = divmod(release.group, most)
    return arb(full * most**2 + left**2).sqrt()


def add(weights: Weights, value: Fraction, chance: arb) -> None:
    weights[value] = weights.get(value, ZERO) + chance


def cut_sums(
    case: Case, record: Fraction, other: Fraction, filler: Fraction, gone: bool
) -> tuple[Sums, Sums]:
    """Laws of the sum of a truncated Poisson sample (3.10): K' others are drawn; the record is kept
    with q where K' < B, else with q B/(K' + 1)."""
    sampler = case.release.sampler
    rate, most = probability(sampler["rate"], "rate"), sampler["max_batch"]
    _, kept, law = cut_sample(case.slots - 1, rate, most, case.negligible)
    P: Weights = {}
    Q: Weights = {}
    full = ZERO
    for drawn, chance in law.items():
        if drawn >= most:
            full += chance
            continue
        for weights, value in ((P, record), (Q, other)):
            add(weights, drawn * filler, chance * ball(1 - rate))
            add(weights, drawn * filler + value, chance * ball(rate))
    add(P, most * filler, full - kept)
    add(P, (most - 1) * filler + record, kept)
    add(Q, most * filler, full if gone else full - kept)
    if not gone:
        add(Q, (most - 1) * filler + other, kept)
    return Sums(P, ZERO), Sums(Q, ZERO)  # all numbers of others are there
