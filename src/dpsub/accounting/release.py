"""The question of an account: how often, and from which samples, noisy sums are released.

A `Release` is checked once, when it is made; everything after it takes it as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.engine.own_mechanism import OwnMechanism
from dpsub.accounting.engine.pairs import MAX_SCALE, MIN_SCALE
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise.banded import BandedStrategy
from dpsub.sampling import kind_of
from dpsub.sampling.base import (
    STAGES,
    Chain,
    PoissonStage,
    Sampler,
    Stage,
    StagedSampler,
    WithReplacement,
)
from dpsub.sampling.laws import MOST_SLOTS
from dpsub.sampling.schedules import Deterministic, Schedule, Shuffle
from dpsub.sampling.schemes import fresh_steps
from dpsub.sampling.weighted import WeightedDraws, WeightedWr

MECHANISMS = ("gaussian", "laplace")
DENOMINATORS = ("fixed", "realised")
MOST_STEPS = 10**9
"""Largest number of releases of one kind: what rounding adds to a composition grows with it."""

Group = int | tuple[int, int]
"""Records of one unit of privacy: g of them are added, removed, replaced or zeroed out at once; or,
under add_remove, (g_plus, g_minus): g_plus are added and g_minus are removed."""
MOST_IN_GROUP = MOST_SLOTS
"""Largest group, to which probabilities of counts are certified."""


class MechanismKeywords(TypedDict, total=False):
    """The mechanism on each sample: keywords that stand for attributes of a `Release`."""

    mechanism: str | OwnMechanism
    denominator: str
    group: Group
    releases_per_sample: int
    records_per_user: int | None
    strategy: BandedStrategy | ArrayLike | None


class CalibratedKeywords(MechanismKeywords, total=False):
    """Keywords of the mechanism, and of how often it is used, in steps or in epochs."""

    steps: int | None
    epochs: float | None


class ReleaseKeywords(CalibratedKeywords, total=False):
    """Keywords of the mechanism, its use and its noise, under either of its names: all that a
    sampler and a number of records lack to be a `Release`."""

    noise_multiplier: float | None
    sigma: float | None


@dataclass(frozen=True)
class Release:
    """A number of releases of one kind from samples: the subject of all questions.

    `account`, `curve`, `check`, `select`, `audit`, `calibrate` and the methods of `Ledger` take
    one, or the keywords that make one.

    Attributes
    ----------
    sampler : Sampler or Schedule
    n : int or None
        Number of records; of the smaller data set under add_remove. Poisson sampling, and
        schedules that do not depend on it, need none.
    noise_multiplier : float
    steps : int
        By default one, or one epoch of a schedule, whose steps are whole epochs.
    mechanism, denominator : str
        One of `MECHANISMS`, and of `DENOMINATORS`. The mechanism may also be an `OwnMechanism`,
        which has no noise multiplier.
    sample : str or None
        Name of what was drawn, if that is kept and might be released from again, which a `Ledger`
        refuses; None where every step draws afresh.
    group : int or tuple of int
        Number of records, at most, that one unit of privacy holds (`Group`).
    one_sided : bool
        Whether they stand for other releases, which tell at most as much of a record: an upper
        bound holds for those, too, and no attack on these is one on them.
    releases_per_sample : int
        Number of releases that are made of each sample before the next one is drawn; `steps` counts
        releases.
    records_per_user : int or None
        None where records are drawn. Else the sampler draws users, `n` of them in all, and of a
        user who is drawn at most so many records enter: neighbouring data sets differ in a user.
    strategy : BandedStrategy or None
        How the noise of steps is correlated; also given as a matrix. None for independent noise.

    Raises
    ------
    ArgumentError
        If an attribute is out of range, the noise multiplier is missing, or the steps of a
        schedule are no whole epochs.

    Examples
    --------
    >>> import dpsub
    >>> training = dpsub.Release(dpsub.Wor(200), 10_000, noise_multiplier=4.0, steps=1000)
    >>> print(training)
    1000 releases from WOR(n = 10000, m = 200), gaussian noise multiplier 4
    >>> dpsub.account(training, delta=1e-5).upper < 1.4
    True
    """

    sampler: Sampler | Schedule
    n: int | None = None
    noise_multiplier: float = None  # type: ignore[assignment]  # refused, but of an own mechanism
    steps: int = None  # type: ignore[assignment]  # of a release that is made, a number
    mechanism: str | OwnMechanism = "gaussian"
    denominator: str = "fixed"
    sample: str | None = None
    group: Group = 1
    one_sided: bool = False
    releases_per_sample: int = 1
    records_per_user: int | None = None
    strategy: BandedStrategy | None = None

    @classmethod
    def of(
        cls,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        noise_multiplier: float | None = None,
        sigma: float | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        sample: str | None = None,
        **released: Unpack[MechanismKeywords],
    ) -> Release:
        """Make a release as callers describe it, whose steps may be given as epochs; a release
        stays as it is.

        Raises
        ------
        ArgumentError
            As `steps_of`, if an attribute is out of range, or if a release is given and described
            as well.
        """
        noise_multiplier = one_noise(noise_multiplier, sigma)
        if isinstance(sampler, Release):
            given = {"n": n, "noise_multiplier": noise_multiplier, "steps": steps, "epochs": epochs}
            _check_described_once(sampler, **given, sample=sample, **released)
            return sampler
        each = _checked_each(released.get("releases_per_sample", 1))
        strategy = BandedStrategy.of(released.get("strategy"))
        if strategy is not None and (steps, epochs) == (None, None):
            steps = strategy.columns
        steps = steps_of(_checked(sampler), n, steps, epochs, each)
        noise = noise_of(released.get("mechanism"), noise_multiplier)
        checked: dict[str, Any] = {**released, "strategy": strategy}
        return cls(sampler, n, noise, steps, sample=sample, **checked)

    @classmethod
    def one_of(
        cls,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        noise_multiplier: float | None = None,
        sigma: float | None = None,
        **described: Unpack[MechanismKeywords],
    ) -> Release:
        """Make one release, or one epoch, for questions that search for their number; otherwise as
        `of`."""
        noise_multiplier = one_noise(noise_multiplier, sigma)
        if isinstance(sampler, Release):
            _check_described_once(sampler, n=n, noise_multiplier=noise_multiplier, **described)
            return dataclasses.replace(sampler, steps=sampler.steps // sampler.epochs)
        # named, so that neither can be given as well
        number = {"steps": None, "epochs": None}
        return cls.of(sampler, n, noise_multiplier=noise_multiplier, **number, **described)

    @classmethod
    def to_calibrate(
        cls,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        **described: Unpack[CalibratedKeywords],
    ) -> Release:
        """Make releases for questions that search for their noise multiplier; otherwise as `of`. A
        multiplier of 1 stands for it, also in place of that of a release."""
        if isinstance(sampler, Release):
            _check_described_once(sampler, n=n, **described)
            return dataclasses.replace(sampler, noise_multiplier=1.0)
        return cls.of(sampler, n, noise_multiplier=1.0, **described)

    def __post_init__(self) -> None:
        _checked(self.sampler)
        noise: float | None = self.noise_multiplier
        if isinstance(self.mechanism, OwnMechanism) and noise == OF_OWN_MECHANISM:
            noise = None  # a copy of a release
        noise_multiplier = checks.real(
            "noise_multiplier",
            noise_of(self.mechanism, noise),
            at_least=MIN_SCALE,
            at_most=MAX_SCALE,
        )
        object.__setattr__(self, "noise_multiplier", noise_multiplier)
        if self.n is not None:
            object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        object.__setattr__(self, "group", checked_group(self.group))
        self._check_samples()
        self._check_steps()
        self._check_strategy()
        if not isinstance(self.mechanism, OwnMechanism):
            named = checks.named("mechanism", self.mechanism, MECHANISMS)
            object.__setattr__(self, "mechanism", named)
        denominator = checks.named("denominator", self.denominator, DENOMINATORS)
        object.__setattr__(self, "denominator", denominator)
        checks.boolean("one_sided", self.one_sided)

    def __str__(self) -> str:
        releases = "1 release" if self.steps == 1 else f"{self.steps} releases"
        noise = str(self.mechanism)
        if isinstance(self.mechanism, str):
            # a mechanism of one's own has no multiplier
            noise += f" noise multiplier {self.noise_multiplier:.6g}"
        stands_for = ", for others that tell at most as much" if self.one_sided else ""
        source = described(self.sampler, self.n)
        return f"{releases} from {source}, {noise}{self._details}{stands_for}"

    @property
    def _details(self) -> str:
        return details_text(
            self.group, self.releases_per_sample, self.records_per_user, self.strategy
        )

    def _check_samples(self) -> None:
        each = _checked_each(self.releases_per_sample)
        object.__setattr__(self, "releases_per_sample", each)
        if self.records_per_user is None:
            return
        most = checks.integer(
            "records_per_user", self.records_per_user, at_least=1, at_most=MOST_IN_GROUP
        )
        object.__setattr__(self, "records_per_user", most)
        if self.group != 1:
            raise ArgumentError(
                "records_per_user is about users that are drawn, and group about records that are "
                f"drawn one by one, got {most} and {self.group}; drop one"
            )

    def _check_steps(self) -> None:
        # of a schedule the number of epochs is what is limited
        is_schedule = isinstance(self.sampler, Schedule)
        epoch, each = self._steps_per_epoch, self.releases_per_sample
        given = steps_of(self.sampler, self.n, self.steps, None, each)
        steps = checks.integer("steps", given, at_least=1, at_most=None)
        if not is_schedule and steps > MOST_STEPS:
            raise ArgumentError(
                f"steps must be at most {MOST_STEPS}, beyond which rounding adds up to more than "
                f"the loss, got steps = {checks.shown(steps)}; account for fewer"
            )
        object.__setattr__(self, "steps", steps)
        if steps % epoch and not is_schedule:
            raise ArgumentError(
                f"steps are {each} releases of each sample, got {steps}; give a multiple of {each}"
            )
        if steps % epoch:
            raise ArgumentError(
                f"steps of {self.sampler.name} must make whole epochs of {epoch}, got {steps}; "
                f"give epochs{self._without_last_batch(epoch)}"
            )
        if is_schedule:
            checks.integer("epochs", self.epochs, at_most=MOST_STEPS)

    def _check_strategy(self) -> None:
        strategy = BandedStrategy.of(self.strategy)
        object.__setattr__(self, "strategy", strategy)
        if strategy is not None and strategy.columns not in (None, self.steps):
            raise ArgumentError(
                f"a strategy has a column for each step, got {strategy.columns} columns and steps "
                f"= {self.steps}; give the strategy of all steps, or one norm for all columns"
            )

    def _without_last_batch(self, epoch: int) -> str:
        """Say what to give instead where the steps fit epochs without their smaller last batch."""
        # that with as many steps less, and another mechanism than the one with fewer records
        whole = epoch - 1
        if not isinstance(self.sampler, Shuffle | Deterministic) or whole < 1 or self.steps % whole:
            return ""
        dropped = dataclasses.replace(self.sampler, drop_last=True)
        if dropped.steps_per_epoch(self.n) != whole:
            return ""
        return ", or drop_last if the last, smaller batch is left out"

    @property
    def _steps_per_epoch(self) -> int:
        samples = 1
        if isinstance(self.sampler, Schedule):
            samples = self.sampler.steps_per_epoch(self.n)
        return samples * self.releases_per_sample

    @property
    def records_moved(self) -> int:
        """Number of records in which neighbouring data sets differ."""
        return self.group if isinstance(self.group, int) else sum(self.group)

    @property
    def is_plain(self) -> bool:
        """Whether each sample is of records and makes one release, with noise of its own."""
        usual = self.releases_per_sample, self.records_per_user, self.strategy
        return usual == (1, None, None)

    @property
    def epochs(self) -> int:
        """Number of epochs of a schedule, or of steps of a sampler."""
        return self.steps // self._steps_per_epoch

    @property
    def times(self) -> int:
        """Number of independent events that are composed: epochs of a schedule, one for all of them
        if they follow one plan, or steps of a sampler."""
        follow_one = isinstance(self.sampler, Schedule) and self.sampler.one_plan
        return 1 if follow_one else self.epochs

    def chain(self) -> Chain:
        """The sampler's stages on n records, in normal form; UnsupportedError where no bound covers
        them."""
        if not isinstance(self.sampler, StagedSampler):
            raise UnsupportedError(
                f"this needs a chain of stages, got {type(self.sampler).__name__}"
            )
        stages = self.sampler.stages
        for stage in stages:
            self._check_stage(stage)
        if self.n is None and not isinstance(stages[0], PoissonStage | WeightedDraws):
            raise UnsupportedError(
                "the number of records n is needed for samplers of fixed size, got none; give n"
            )
        # what Poisson samples and weighted draws tell of a record does not depend on the number of
        # the others
        n = 1 if self.n is None else self.n
        return self.sampler.chain_on(n).normal_form()

    def _check_stage(self, stage: Stage) -> None:
        is_known = isinstance(self.sampler, WeightedWr) or type(stage) in STAGES.values()
        if not is_known:
            raise UnsupportedError(
                f"no bound is proved for stages of kind {type(stage).__name__}; use the "
                "stages of dpsub.sampling"
            )
        if isinstance(stage, PoissonStage):
            checks.real("rate", stage.rate, above=0, at_most=1)
            if self.denominator == "realised":
                raise UnsupportedError(
                    "no bound covers Poisson samples divided by their realised size, "
                    "because the noise then reveals how many records were drawn; "
                    "divide by a fixed number"
                )
        if isinstance(stage, WithReplacement) and stage.size > MOST_SLOTS:
            raise UnsupportedError(
                f"probabilities of counts are certified up to {MOST_SLOTS} slots drawn with "
                f"replacement, got {stage.size}; take fewer"
            )


def described(sampler: Sampler | Schedule, n: int | None) -> str:
    """Return the sampler with its sizes, as a reader expects it: WOR(n = 100, m = 10)."""
    parts = [] if n is None else [f"n = {n}"]
    for field in dataclasses.fields(sampler):  # type: ignore[arg-type]
        if field.name == "n" and n is not None:
            continue
        value = getattr(sampler, field.name)
        if value is None or value is False:
            continue
        if value is True:
            parts.append(field.name)
        elif field.name == "chain":
            parts += [
                f"{s.kind}:{_exact(s.rate if s.kind == 'poisson' else s.size)}" for s in value
            ]
        else:
            parts.append(f"{field.name} = {_exact(value)}")
    return f"{sampler.label}({', '.join(parts)})"


def _exact(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def group_text(group: Group) -> str:
    """Return the unit of privacy in words, where it is more than a record."""
    if group == 1:
        return ""
    if isinstance(group, int):
        return f", groups of {group} records"
    return f", groups of {group[0]} records added and {group[1]} removed"


def details_text(
    group: Group,
    releases_per_sample: int,
    records_per_user: int | None,
    strategy: BandedStrategy | None,
) -> str:
    """Return the unit of privacy, the use of samples and correlations of noise in words, where they
    are not the usual ones."""
    text = group_text(group)
    if releases_per_sample != 1:
        text += f", {releases_per_sample} of each sample"
    if records_per_user is not None:
        records = "1 record" if records_per_user == 1 else f"{records_per_user} records"
        text += f", users with at most {records} in a step"
    if strategy is not None:
        text += f", correlated noise of {strategy.bands} bands"
    return text


def _check_described_once(release: Release, **given: Any) -> None:
    """Raise ArgumentError for keywords next to a release that has them itself."""
    more = [name for name, value in given.items() if value is not None]
    if more:
        raise ArgumentError(
            f"a Release says all of its releases itself, got {more[0]} as well; drop it, or make "
            f"another one with dataclasses.replace(release, {more[0]}=...)"
        )


def _checked(sampler: Any) -> Sampler | Schedule:
    """Return a sampler or a schedule; ArgumentError, with the way out, if it is neither."""
    if isinstance(sampler, Sampler | Schedule):
        return sampler
    kind = sampler if isinstance(sampler, type) else None
    if isinstance(sampler, str):
        try:
            kind = kind_of(checks.plain_word(sampler))
        except ArgumentError as error:
            raise ArgumentError(
                f"a sampler must be an object such as dpsub.Poisson(0.01), got a text: {error}"
            ) from None
    if hasattr(sampler, "ledger"):  # a run of `from_loader`, above this layer
        raise ArgumentError(
            "a sampler must be an object such as dpsub.Poisson(0.01), got a run of a loop; for its "
            "noise give run.releases[0], for every other question give run.ledger()"
        )
    if not (isinstance(kind, type) and issubclass(kind, Sampler | Schedule)):
        raise ArgumentError(
            f"a sampler must be an object such as dpsub.Poisson(0.01), got {sampler!r}; make one"
        )
    fields = ", ".join(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]
    got = f"the text {sampler!r}" if isinstance(sampler, str) else "its class"
    raise ArgumentError(
        f"a sampler must be an object with its sizes, got {got}; write "
        f"dpsub.{kind.__name__}({fields})"
    )


OF_OWN_MECHANISM = 1.0
"""Noise multiplier of a release with a mechanism of one's own, which has none: its pair holds all
noise."""


def one_noise(noise_multiplier: float | None, sigma: float | None) -> float | None:
    """Return the noise multiplier under the name that a caller uses, as papers call it sigma;
    ArgumentError if both are given."""
    if noise_multiplier is not None and sigma is not None:
        raise ArgumentError(
            "noise_multiplier and sigma are two names of one number, got both; drop one"
        )
    return sigma if noise_multiplier is None else noise_multiplier


def noise_of(mechanism: str | OwnMechanism | None, noise_multiplier: float | None) -> float:
    """Return the noise multiplier that a caller gives; `OF_OWN_MECHANISM` for a mechanism with
    noise of its own.

    Raises
    ------
    ArgumentError
        If it is missing, or given for a mechanism that has its own noise.
    """
    if isinstance(mechanism, OwnMechanism):
        if noise_multiplier is not None:
            raise ArgumentError(
                f"{mechanism} has its own noise, so that none is given or searched for, got "
                f"noise_multiplier = {noise_multiplier:g}; drop it"
            )
        return OF_OWN_MECHANISM
    if noise_multiplier is None:
        raise ArgumentError("a noise_multiplier is needed, got none; give it")
    return noise_multiplier


def _checked_each(releases_per_sample: Any) -> int:
    return checks.integer(
        "releases_per_sample", releases_per_sample, at_least=1, at_most=MOST_STEPS
    )


def steps_of(
    sampler: Sampler | Schedule,
    n: int | None,
    steps: int | None,
    epochs: float | None,
    releases_per_sample: int = 1,
) -> int:
    """Return the number of steps that a caller gives as `steps`, or as `epochs`; by default one
    sample, or one epoch of a schedule.

    An epoch of a sampler has as many samples as draw each record once on average, and the number of
    all samples is rounded up; each of them makes `releases_per_sample` steps.

    Raises
    ------
    ArgumentError
        If both are given, epochs are out of range, or n is needed and missing.
    """
    if steps is not None:
        if epochs is not None:
            raise ArgumentError("steps and epochs state the same number, got both; drop one")
        return steps
    if isinstance(sampler, Schedule):
        number = 1 if epochs is None else epochs
        whole = checks.integer("epochs", number, at_least=1, at_most=MOST_STEPS)
        return whole * sampler.steps_per_epoch(n) * releases_per_sample
    if epochs is None:
        return releases_per_sample
    epochs = checks.real("epochs", epochs, above=0)
    share = _share_of_records(sampler, n)
    if not (share > 0 and epochs / share <= MOST_STEPS):
        raise ArgumentError(
            f"steps must be at most {MOST_STEPS}, got epochs = {epochs:g} at {share:g} of the "
            "records per step; account for fewer"
        )
    return fresh_steps(share, epochs) * releases_per_sample


def _share_of_records(sampler: Sampler, n: int | None) -> float:
    """Return the expected share of the records that one step reads, repeats counted."""
    if n is None:
        stages = sampler.stages if isinstance(sampler, StagedSampler) else ()
        if not stages or not all(isinstance(stage, PoissonStage) for stage in stages):
            raise ArgumentError(
                f"epochs of {sampler.name} need the number of records n, got none; give n or steps"
            )
        n = 1  # a record's chance does not depend on the others
    return float(sampler.expected_share(n))


def checked_group(group: Any) -> Group:
    """Return the group in its checked form: a number, or two, the larger one first.

    Data sets are compared in both orders, so that (g_plus, g_minus) and (g_minus, g_plus) are one
    question, and (g, 0) is g.

    Raises
    ------
    ArgumentError
        If it is no number of records from 1 on, nor two of them.
    """
    if not isinstance(group, tuple | list):
        return checks.integer("group", group, at_least=1, at_most=MOST_IN_GROUP)
    if len(group) != 2:
        raise ArgumentError(
            f"group must be one number, or how many records are added and how many removed, got "
            f"{len(group)} numbers; give (g_plus, g_minus)"
        )
    fewer, more = sorted(
        checks.integer("group", each, at_least=0, at_most=MOST_IN_GROUP) for each in group
    )
    if more == 0:
        raise ArgumentError("group must hold at least one record, got (0, 0); give (1, 0)")
    return (more, fewer) if fewer else more


_USUAL = {
    "group": 1,
    "one_sided": False,
    "releases_per_sample": 1,
    "records_per_user": None,
    "strategy": None,
}


def as_plain(release: Release) -> dict[str, Any]:
    """Return a release as in JSON: its fields, those of the sampler next to its name."""
    if isinstance(release.mechanism, OwnMechanism):
        raise UnsupportedError(
            f"{release.mechanism} is a mechanism of one's own, which no file holds; keep what "
            "makes it"
        )
    fields = {field.name: getattr(release, field.name) for field in dataclasses.fields(release)}
    sampler: Any = release.sampler
    parameters = {field.name: getattr(sampler, field.name) for field in dataclasses.fields(sampler)}
    # files do not name usual values
    for name, usual in _USUAL.items():
        if fields[name] == usual:
            del fields[name]
    if "strategy" in fields:
        fields["strategy"] = dataclasses.asdict(fields["strategy"])
    if parameters.get("drop_last") is False:
        del parameters["drop_last"]
    if "chain" in parameters:
        parameters["chain"] = [_plain_stage(stage) for stage in parameters["chain"]]
    return {**fields, "sampler": {"name": release.sampler.name, **parameters}}


def of_plain(entry: Any) -> Release:
    """Return the release that `as_plain` wrote; ArgumentError where it is none."""
    names = {field.name for field in dataclasses.fields(Release)}
    if isinstance(entry, Mapping):
        names -= set(_USUAL) - set(entry)
    fields = _fields("a release", entry, names)
    if "strategy" in fields:
        known = [field.name for field in dataclasses.fields(BandedStrategy)]
        fields["strategy"] = BandedStrategy(**_fields("a strategy", fields["strategy"], known))
    sampler = fields.pop("sampler")
    name = sampler.get("name") if isinstance(sampler, Mapping) else sampler
    kind: Any = kind_of(str(name))
    sizes = {field.name for field in dataclasses.fields(kind)}
    if isinstance(sampler, Mapping):
        sizes -= {"drop_last"} - set(sampler)
    parameters = _fields(str(name), sampler, ["name", *sizes])
    del parameters["name"]
    if "chain" in parameters:
        chain = parameters["chain"]
        if not isinstance(chain, list):
            raise ArgumentError(f"chain must be a list of stages, got {chain!r}")
        parameters["chain"] = [_stage(stage) for stage in chain]
    if not isinstance(fields["sample"], str | None):
        raise ArgumentError(f"sample must be a name or null, got {fields['sample']!r}")
    # a file says how many: null is not one
    checks.integer("steps", fields["steps"], at_least=1, at_most=None)
    return Release(kind(**parameters), **fields)


def _plain_stage(stage: Any) -> dict[str, Any]:
    return {"kind": stage.kind, **dataclasses.asdict(stage)}


def _stage(entry: Any) -> Stage:
    name = entry.get("kind") if isinstance(entry, Mapping) else entry
    kind: Any = STAGES[checks.one_of("kind of stage", name, STAGES)]
    known = [field.name for field in dataclasses.fields(kind)]
    parameters = _fields("a stage", entry, ["kind", *known])
    del parameters["kind"]
    stage: Stage = kind(**parameters)
    return stage


def _fields(what: str, entry: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the entry, which must have these names and no other: a missing one might be the one
    that counts."""
    given = set(entry) if isinstance(entry, Mapping) else {repr(entry)}
    needed = set(names)
    if given != needed:
        raise ArgumentError(
            f"{what} needs the entries {', '.join(sorted(needed))}, got {', '.join(sorted(given))}"
        )
    return dict(entry)
