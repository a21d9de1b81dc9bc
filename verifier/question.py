"""Question of a certificate: releases of noisy sums, the changes of the data sets, and what is
asked of them.

One set of rules for all of it, those by which `dpsub` refuses a question. A false claim would have
to be one about a question that cannot be asked, as anything may be said to follow from it: sizes
that do not fit each other, a group that no data set holds, a relation without a theorem. What a
proof has to be follows from the question alone: which theorems may be named, how often laws are
composed, whether both orders of the data sets have to be bounded.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from balls import NotCovered, Refuted
from flint import arb
from multiplicity import Stage, probability, stages_of

SCHEDULES = (
    *("deterministic", "cyclic_poisson", "shuffle", "random_allocation", "min_separation"),
    "secret_cyclic_poisson",
)
IN_ONE_ORDER = "persistent_shuffle"  # read as one epoch of "shuffle"
LEAST_NOISE, MOST_NOISE = 0.05, 1e9
MOST_COMPOSED = 10**9  # steps, or epochs of a schedule
MOST_DRAWS = 10**6  # draws of a stage with replacement, and records of a group
MOST_EPSILON = 1e12


def need(holds: bool, rule: str) -> None:
    if not holds:
        raise Refuted(f"question: {rule}")


def cover(holds: bool, what: str) -> None:
    if not holds:
        raise NotCovered(what)


@dataclass(frozen=True)
class Release:
    """One release of the question; n is the size of the smaller data set."""

    sampler: dict
    n: int | None
    s: arb
    steps: int
    laplace: bool
    group: int | tuple[int, int] = 1  # records that differ; or of D alone, and of D'
    one_sided: bool = False  # whether it stands for releases that tell at most as much
    as_one: bool = False  # whether the epoch is several in one order, with the noise of their means

    @property
    def name(self) -> str:
        return self.sampler["name"]

    @cached_property
    def stages(self) -> list[Stage] | None:
        """Of samples that are a chain, merged; None of others."""
        return stages_of(self.sampler)

    @property
    def kinds(self) -> list[str] | None:
        return None if self.stages is None else [stage.kind for stage in self.stages]

    @property
    def rounds(self) -> int:
        """Number of independent events: the release's steps, or the epochs of a schedule; one,
        where all epochs keep what was drawn for them."""
        if self.name not in SCHEDULES:
            return self.steps
        return 1 if self.name == "secret_cyclic_poisson" else self.epochs

    @property
    def epochs(self) -> int:
        """Number of epochs of a schedule."""
        return self.steps // self.steps_per_epoch(self.n)

    def times(self, theorem: str) -> int:
        """How often laws by this theorem are composed, above: once for each event, or for each of
        the steps that are bounded one by one."""
        if self.name == "secret_cyclic_poisson" and theorem == "17":
            return self.epochs
        if self.name == "min_separation" and theorem == "87" and not self.in_known_steps:
            return self.steps
        return self.rounds

    def steps_per_epoch(self, n: int | None) -> int:
        if self.name in ("random_allocation", "min_separation"):
            return self.sampler["t"]
        if self.name in ("cyclic_poisson", "secret_cyclic_poisson"):
            return self.sampler["cycle"]
        if self.sampler["m"] is None:
            return 1
        assert n is not None
        return n // self.sampler["m"] if self.drops_last else -(-n // self.sampler["m"])

    @property
    def drops_last(self) -> bool:
        """Whether records of an epoch that make no whole step are left out."""
        return self.sampler.get("drop_last", False)

    @property
    def in_all_steps(self) -> bool:
        """An allocation that leaves no choice."""
        return self.name == "random_allocation" and self.sampler["k"] == self.sampler["t"]

    @property
    def in_known_steps(self) -> int:
        """How many steps of an epoch hold the record, where no choice is left; else 0."""
        if self.in_all_steps:
            return self.sampler["t"]
        if self.name == "min_separation" and self.sampler["rate"] == 1:
            return -(-self.sampler["t"] // self.sampler["separation"])
        return 0

    @property
    def in_one_step(self) -> bool:
        """Shuffled epochs of one step, which holds all records."""
        return self.name == "shuffle" and self.steps_per_epoch(self.n) == 1


def read_release(data: dict, adjacency: str) -> Release:
    """Return the release that the question states; refuse what cannot be, or what no theorem is
    about."""
    cover(data["mechanism"] in ("gaussian", "laplace"), f"noise {data['mechanism']}")
    cover(data["denominator"] == "fixed", "a denominator that is not fixed")
    cover(data["sample"] is None, "several queries of one sample")
    noise = data["noise_multiplier"]
    need(
        LEAST_NOISE <= noise <= MOST_NOISE,
        f"noise_multiplier must be from {LEAST_NOISE} to {MOST_NOISE:g}, got {noise!r}",
    )
    group = data.get("group", 1)
    is_kept = data["sampler"]["name"] == IN_ONE_ORDER
    release = Release(
        data["sampler"] | {"name": "shuffle"} if is_kept else data["sampler"],
        data["n"],
        arb(noise),
        data["steps"],
        data["mechanism"] == "laplace",
        tuple(group) if isinstance(group, list) else group,
        data.get("one_sided", False),
    )
    check_sizes(release)
    check_steps(release)
    if is_kept and release.rounds > 1:
        release = as_one_epoch(release)
    check_group(release, adjacency)
    check_relation(release, adjacency)
    return release


def as_one_epoch(release: Release) -> Release:
    """Return one epoch for several in one order: to a record whose step is known they are one with
    the noise of their means, and the means are a function of the outputs (Theorem 83)."""
    cover(not release.laplace, "Laplace noise on several epochs in one order")
    epochs = release.rounds
    s = release.s / arb(epochs).sqrt()
    cover(bool(s >= LEAST_NOISE), f"noise below {LEAST_NOISE} on the means of {epochs} epochs")
    return replace(release, s=s, steps=release.steps // epochs, as_one=True)


def check_sizes(release: Release) -> None:
    """Check that sizes and rates fit each other and n."""
    sampler, n = release.sampler, release.n
    sizes = {"n": n} | {
        name: sampler.get(name) for name in ("m", "b", "max_batch", "cycle", "t", "k", "separation")
    }
    sizes |= {f"stage {i}": each.get("size") for i, each in enumerate(sampler.get("chain", []), 1)}
    for name, size in sizes.items():
        need(size is None or size >= 1, f"{name} must be at least 1, got {size}")
    if "rate" in sampler:
        probability(sampler["rate"], "rate")
    stages = release.stages  # where they do not fit each other, this refuses them
    if release.name == "weighted_wr":
        need(n is None or n * stages[0].rate >= 1 - 1e-9, "the largest weight is at least 1/n")
    elif stages is not None and stages[0].kind != "poisson":
        need(n is not None, f"n is needed for {release.name}")
    if stages is not None and stages[0].kind == "without":
        # The stage that is drawn first may have been larger than what is left of it.
        first = sampler.get("b", sampler.get("m"))
        if release.name == "multistage":
            first = sampler["chain"][0]["size"]
        need(first <= n, f"at most n = {n} records are drawn without replacement, got {first}")
    for stage in stages or []:
        cover(
            stage.kind != "with" or stage.size <= MOST_DRAWS,
            f"too large: {stage.size} draws with replacement, of at most {MOST_DRAWS}",
        )
    if release.name == "truncated_poisson":
        need(n is not None, f"n is needed for {release.name}")
    if release.name in ("shuffle", "deterministic") and sampler["m"] is not None:
        need(n is not None, f"n is needed for {release.name} in steps of m records")
        need(sampler["m"] <= n, f"m must be at most n = {n}, got {sampler['m']}")
    if release.name == "cyclic_poisson" and n is not None:
        need(sampler["cycle"] <= n, f"cycle must be at most n = {n}, got {sampler['cycle']}")
    if release.name == "random_allocation":
        need(sampler["k"] <= sampler["t"], "no record goes to more steps than there are")
    if release.in_known_steps and sampler.get("warm_start") and sampler["separation"] > 1:
        cover(False, "records that are drawn whenever they are available, after a warm start")


def check_steps(release: Release) -> None:
    need(release.steps >= 1, f"steps must be at least 1, got {release.steps}")
    if release.name in SCHEDULES:
        epoch = release.steps_per_epoch(release.n)
        need(release.steps % epoch == 0, f"{release.steps} steps are no whole number of epochs")
    rounds = release.epochs if release.name in SCHEDULES else release.steps
    need(rounds <= MOST_COMPOSED, f"at most {MOST_COMPOSED} rounds, got {rounds}")


def check_group(release: Release, adjacency: str) -> None:
    """Refuse a group that one of the data sets has no room for."""
    group, n = release.group, release.n
    if isinstance(group, tuple):
        need(adjacency == "add_remove", "a group is mixed under add_remove alone")
        need(
            group[0] >= group[1] >= 1,
            f"a mixed group is two numbers, the larger first, got {group}",
        )
        cover(max(group) <= MOST_DRAWS, f"too large: a group of {max(group)} records")
        return
    need(group >= 1, f"a group has at least one record, got {group}")
    cover(group <= MOST_DRAWS, f"too large: a group of {group} records, of at most {MOST_DRAWS}")
    if adjacency != "add_remove" and n is not None:
        need(group <= n, f"group must be at most n = {n} under {adjacency}, got {group}")


def check_relation(release: Release, adjacency: str) -> None:
    """Refuse a relation that no theorem is about."""
    if release.name == "weighted_wr" and adjacency == "add_remove":
        need(release.sampler["largest_weight"] < 1, "the other records have a weight, too")
    cover(
        bool(theorems_about(release, adjacency)),
        f"{release.name} with {'Laplace' if release.laplace else 'Gaussian'} noise under "
        f"{adjacency}, group {release.group}: no theorem of this program is about it",
    )
    if release.name == "deterministic" and adjacency == "add_remove" and release.sampler["m"]:
        epoch = release.steps_per_epoch(release.n)
        added = release.group if isinstance(release.group, int) else 0
        need(
            release.steps_per_epoch(release.n + added) == epoch,
            "an epoch must not gain a step when records are added",
        )


# --- What a proof of it has to be -----------------------------------------------------------------


def theorems_about(release: Release, adjacency: str) -> tuple[str, ...]:
    """Theorems that may bound one round of the release from above; each checks its hypotheses
    again."""
    if release.group != 1:
        return _about_groups(release, adjacency)
    if release.stages is not None:
        return _about_chains(release, adjacency)
    if release.name in ("deterministic", "cyclic_poisson"):
        return ("17",)
    if release.laplace:
        return ()
    if release.name == "truncated_poisson":
        return "18", "71"
    if release.name == "min_separation":
        in_steps = adjacency == "substitute" or release.in_known_steps
        return ("87",) if in_steps else ("87 (i)", "87")
    if release.name == "secret_cyclic_poisson":
        return "substitution" if adjacency == "substitute" else "85", "17"
    if release.name == "shuffle":
        if adjacency == "add_remove":
            return ()
        # in one order vectors that follow earlier epochs may tell the place of another record:
        # clones alone hide one
        return ("19", "89") if release.as_one else ("19", "61", "89")
    if adjacency == "substitute":
        return ("substitution",)
    one = "25" if release.sampler["k"] == 1 else "27"
    # a record in all steps leaves no blocks to choose, and none are checked
    return (one,) if release.in_all_steps else (one, "72")


def _about_groups(release: Release, adjacency: str) -> tuple[str, ...]:
    if release.laplace or release.name == "weighted_wr":
        return ()
    if isinstance(release.group, tuple):
        return ("35",) if release.kinds == ["poisson"] else ()
    if release.kinds == ["poisson"] or release.name in ("deterministic", "cyclic_poisson"):
        return ("35",)
    if release.stages is None:
        return ()
    if adjacency == "zero_out":
        return ("38",) if release.kinds == ["without"] else ()
    return ("36",) if adjacency == "substitute" else ("37",)


def _about_chains(release: Release, adjacency: str) -> tuple[str, ...]:
    kinds = release.kinds
    if kinds == ["poisson"]:
        return ("1",)
    if release.laplace and kinds != ["without"]:
        return ()
    if len(kinds) == 1 and adjacency == "add_remove":
        return ("9",)
    if adjacency == "zero_out":
        if kinds == ["without"]:
            return ("73",) if release.laplace else ("16",)
        return () if kinds[-1] == "poisson" else ("47",)
    if adjacency == "add_remove":
        return ("10",)
    return {"without": ("2",), "with": ("4",)}[kinds[0]] if len(kinds) == 1 else ("6",)


def game_of(release: Release, adjacency: str) -> str | None:
    """Theorem whose game bounds many steps of the release, if there is one."""
    if release.group != 1 or release.kinds is None:
        return None
    kinds = tuple(release.kinds)
    if adjacency == "zero_out":
        return "70" if kinds == ("without",) and not release.laplace else None
    if adjacency != "substitute":
        return None
    if release.laplace:
        return "30" if kinds == ("without",) else None
    games = {("without",): "15", ("with",): "22", ("without", "with"): "22", ("with", "with"): "65"}
    return games.get(kinds)


def serves_both_orders(release: Release, adjacency: str) -> bool:
    """Whether a bound for (D, D') is one for (D', D): under substitution the two may change places,
    and the bound of a shuffled epoch is the same for both."""
    return adjacency == "substitute" or release.name == "shuffle"


# --- The whole question ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """The question: of `quantity`, epsilon or delta, the other one is given."""

    releases: list[Release]
    adjacency: str
    quantity: str
    given: float
    plain: dict = field(repr=False)  # the question as the file has it

    @property
    def serves_both_orders(self) -> bool:
        return all(serves_both_orders(each, self.adjacency) for each in self.releases)


def read_question(data: dict) -> Question:
    quantity = data["quantity"]
    (given,) = data["given"].values()
    if quantity == "epsilon":
        need(0 < given < 1, f"delta must be above 0 and below 1, got {given!r}")
    else:
        need(
            0 <= given <= MOST_EPSILON, f"epsilon must be from 0 to {MOST_EPSILON:g}, got {given!r}"
        )
    releases = [read_release(release, data["adjacency"]) for release in data["releases"]]
    groups = {release.group for release in releases}
    need(len(groups) == 1, "all releases need one unit of privacy, one group")
    return Question(releases, data["adjacency"], quantity, given, data)


@dataclass(frozen=True)
class Claim:
    """Claim that one bound of a question meets, or does not meet, delta at epsilon."""

    question: Question
    epsilon: arb
    delta: arb

    @property
    def releases(self) -> list[Release]:
        return self.question.releases

    @property
    def adjacency(self) -> str:
        return self.question.adjacency

    def cut(self) -> arb:
        """Masses that may be lost in a law without being seen in the nine digits of the claim."""
        most = max(release.steps for release in self.releases)
        return self.delta * arb(10) ** -15 / (4 * most)


def claim_of(question: Question, value: float) -> Claim:
    """Return the claim of one bound, put in the place of what was asked for."""
    epsilon, delta = (
        (value, question.given) if question.quantity == "epsilon" else (question.given, value)
    )
    cover(epsilon <= MOST_EPSILON, f"too large: an epsilon of {epsilon!r}, above {MOST_EPSILON:g}")
    return Claim(question, arb(epsilon), arb(delta))


# --- In words -------------------------------------------------------------------------------------

RELATIONS = {
    "add_remove": "one record added or removed",
    "substitute": "one record replaced",
    "zero_out": "one record replaced by one that contributes 0",
}


def described(question: Question) -> list[str]:
    """Describe the whole question, and what it takes for granted."""
    asked = "delta" if question.quantity == "epsilon" else "epsilon"
    lines = [
        f"question: {question.quantity} at {asked} = {question.given!r}, {question.adjacency}: "
        f"{_changed(question)}"
    ]
    lines += [f"release: {_of(release)}" for release in question.plain["releases"]]
    noise = {
        "Laplace of scale s C" if each.laplace else "N(0, (s C)^2 I)" for each in question.releases
    }
    return [
        *lines,
        "conditions: each record contributes a vector of norm at most C (a number, if noise is "
        "Laplace) that depends only on that record and on past releases; a step releases the sum "
        f"over its sample plus noise ({', '.join(sorted(noise))}), divided by nothing or by a "
        "number fixed in advance; samples are drawn again at every step, and plans in every epoch "
        f"({IN_ONE_ORDER} and the groups of secret_cyclic_poisson: once for all epochs), "
        "independently and in secret; sizes and rates are "
        "public; real arithmetic (docs/guarantees.md)",
    ]


def _changed(question: Question) -> str:
    group = question.releases[0].group
    if isinstance(group, tuple):
        return f"{group[0]} records added and {group[1]} removed together"
    words = RELATIONS[question.adjacency]
    return words if group == 1 else f"for {group} records together: {words}"


def _of(release: dict) -> str:
    sampler = release["sampler"]
    sizes = ", ".join(
        f"{name} = {_chain(size) if name == 'chain' else _number(size)}"
        for name, size in sampler.items()
        if name != "name"
    )
    n = "any" if release["n"] is None else release["n"]
    stands_for = ", in the place of releases that tell at most as much of a record"
    return (
        f"{release['steps']} steps of {sampler['name']} ({sizes}), n = {n}, "
        f"{release['mechanism']} noise of multiplier {_number(release['noise_multiplier'])}"
        f"{stands_for if release.get('one_sided') else ''}"
    )


def _chain(stages: list[dict]) -> str:
    return ",".join(
        f"{each['kind']}:{_number(each.get('size', each.get('rate')))}" for each in stages
    )


def _number(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else str(value)
