"""The rows of the map, and its trainings: to add a scheme is to add one entry of `SCHEMES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsub.accounting.questions.recommend import training_with
from dpsub.accounting.release import Release
from dpsub.noise.banded import BandedStrategy
from dpsub.relations import Relation
from dpsub.reproduce.paired import REFERENCE
from dpsub.sampling import MinSeparation, Poisson, Shuffle, WeightedWr
from dpsub.sampling.schemes import CYCLE

RELATIONS = (Relation.ADD_REMOVE, Relation.ZERO_OUT, Relation.SUBSTITUTE)
"""The columns of the map."""
FRESH, EPOCHS, USES, KEPT = "fresh", "epochs", "uses", "kept"
"""Groups of schemes, each an experiment: batches that are drawn afresh; plans of whole epochs;
other uses of batches than one sum with noise of its own over single records; plans that are kept
for the whole training."""
REUSED, RECORDS = 4, 4
"""Steps that keep one sample, and records of a user that enter at most."""
HEAVIEST, SEPARATION = 2, CYCLE
"""Largest weight of a record over the mean weight, and steps from one batch of a record to the next
one at least."""


@dataclass(frozen=True)
class MapTraining:
    """A training whose size people know.

    Attributes
    ----------
    name, title : str
        Identifier in records and results, and how readers call it.
    n, m, epochs : int
        Number of records, (expected) size of a batch, and epochs.
    delta : float
        At which all targets are stated.
    """

    name: str
    title: str
    n: int
    m: int
    epochs: int
    delta: float = 1e-5

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of records, size of a batch, and epochs."""
        return self.n, self.m, self.epochs


TRAININGS: dict[str, MapTraining] = {
    one.name: one
    for one in (
        MapTraining("mnist", "MNIST-like", 60_000, 600, 10),
        MapTraining("cifar", "CIFAR-like", 50_000, 512, 30),
        MapTraining("tabular", "tabular", 30_000, 256, 5),
        MapTraining("fine_tuning", "fine-tuning", 10_000, 64, 3),
        MapTraining("pre_training", "pre-training", 1_200_000, 4096, 90, 1e-6),
    )
}


@dataclass(frozen=True)
class MappedScheme:
    """A row of the map.

    Attributes
    ----------
    name : str
        As `recommend` calls it, else a name of its own, which needs a label in `labels.py`.
    group : str
        The experiment that computes it.
    draws : str
        What a loader does, in a few words.
    command : str
        The words of the command line that stand for a training with it, behind `dpsub calibrate`;
        its placeholders are the fields of `MapTraining`, the `plan` (sampler or schedule) and the
        `steps` of the release.
    release : callable, optional
        Maps a training to its releases, with any noise; by default those of `recommend`. It raises
        ArgumentError or UnsupportedError, with the reason, where the scheme does not fit.
    """

    name: str
    group: str
    draws: str
    command: str
    release: Callable[[MapTraining], Release] | None = None

    def releases(self, training: MapTraining) -> Release:
        """Return the releases of a training with this scheme, with a noise multiplier of 1."""
        if self.release is not None:
            return self.release(training)
        return training_with(self.name, *training.sizes)

    def arguments(self, training: MapTraining) -> str:
        """Return the words of the command line for a training with this scheme."""
        release = self.releases(training)
        return self.command.format(**vars(training), plan=release.sampler, steps=release.steps)


def _shuffle_drop_last(training: MapTraining) -> Release:
    shuffle = Shuffle(training.m, drop_last=True)
    steps = training.epochs * shuffle.steps_per_epoch(training.n)
    return Release(shuffle, training.n, 1.0, steps)


def _weighted_wr(training: MapTraining) -> Release:
    weighted = WeightedWr(training.m, HEAVIEST / training.n)
    return replace(training_with("wr", *training.sizes), sampler=weighted)


def _min_separation(training: MapTraining) -> Release:
    steps = training_with(REFERENCE, *training.sizes).steps
    separated = MinSeparation.of_sizes(training.n, separation=SEPARATION, t=steps, m=training.m)
    return Release(separated, training.n, 1.0, steps)


def _reused_sample(training: MapTraining) -> Release:
    samples = -(-training_with(REFERENCE, *training.sizes).steps // REUSED)
    return Release(
        Poisson(training.m / training.n),
        training.n,
        1.0,
        samples * REUSED,
        releases_per_sample=REUSED,
    )


def _users(training: MapTraining) -> Release:
    return replace(training_with(REFERENCE, *training.sizes), records_per_user=RECORDS)


def _banded(training: MapTraining) -> Release:
    release = training_with("cyclic_poisson", *training.sizes)
    return replace(release, strategy=BandedStrategy(CYCLE))


_SIZES = "--n {n} --m {m} --epochs {epochs}"
SCHEMES: dict[str, MappedScheme] = {
    one.name: one
    for one in (
        MappedScheme(
            REFERENCE,
            FRESH,
            "includes each record independently at each step",
            f"poisson {_SIZES}",
        ),
        MappedScheme(
            "truncated_poisson",
            FRESH,
            "includes each record independently, and cuts batches of more than m + 3 √m records",
            "truncated_poisson --n {n} --m {m} --max-batch {plan.max_batch} --steps {steps}",
        ),
        MappedScheme("wor", FRESH, "draws m different records at each step", f"wor {_SIZES}"),
        MappedScheme("wr", FRESH, "draws m records with replacement at each step", f"wr {_SIZES}"),
        MappedScheme(
            "weighted_wr",
            FRESH,
            "draws m records with replacement at each step, by public weights: that of the "
            f"heaviest record is {HEAVIEST} times their mean",
            "weighted_wr --n {n} --m {m} --largest-weight {plan.largest_weight} --epochs {epochs}",
            _weighted_wr,
        ),
        MappedScheme(
            "must_ow",
            FRESH,
            "draws 2 m different records, then m of these with replacement",
            "must_ow --n {n} --b {plan.b} --m {m} --epochs {epochs}",
        ),
        MappedScheme(
            "must_ww",
            FRESH,
            "draws 2 m records with replacement, then m of these with replacement",
            "must_ww --n {n} --b {plan.b} --m {m} --epochs {epochs}",
        ),
        MappedScheme(
            "three_stage",
            FRESH,
            "draws 4 m different records, 2 m of these with replacement, m of these without",
            "multistage --n {n} --stages wor:{plan.chain[0].size},wr:{plan.chain[1].size},"
            "wor:{plan.chain[2].size} --epochs {epochs}",
        ),
        MappedScheme(
            "random_allocation",
            EPOCHS,
            "puts each record into one random step of each epoch, independently",
            "random_allocation --n {n} --t {plan.t} --epochs {epochs}",
        ),
        MappedScheme(
            "k_of_t",
            EPOCHS,
            "puts each record into as many random steps of the whole training as there are epochs",
            "random_allocation --n {n} --t {plan.t} --k {plan.k} --epochs 1",
        ),
        MappedScheme(
            "shuffle", EPOCHS, "shuffles at each epoch and cuts into batches", f"shuffle {_SIZES}"
        ),
        MappedScheme(
            "shuffle_drop_last",
            EPOCHS,
            "shuffles at each epoch and drops the rest that makes no whole batch",
            f"shuffle {_SIZES} --drop-last",
            _shuffle_drop_last,
        ),
        MappedScheme(
            "cyclic_poisson",
            EPOCHS,
            "takes turns among ten fixed groups, and includes each record of the group "
            "independently",
            "cyclic_poisson --n {n} --m {m} --cycle {plan.cycle} --steps {steps}",
        ),
        MappedScheme(
            "deterministic",
            EPOCHS,
            "reads the records in one fixed order, which is known",
            f"deterministic {_SIZES}",
        ),
        MappedScheme(
            "reused_sample",
            USES,
            f"keeps each Poisson sample for {REUSED} steps",
            f"poisson --n {{n}} --m {{m}} --steps {{steps}} --releases-per-sample {REUSED}",
            _reused_sample,
        ),
        MappedScheme(
            "users",
            USES,
            f"includes each user independently at each step, with at most {RECORDS} records; n is "
            "the number of users",
            f"poisson {_SIZES} --records-per-user {RECORDS}",
            _users,
        ),
        MappedScheme(
            "banded_cyclic_poisson",
            USES,
            f"takes turns as cyclic Poisson, with noise correlated over {CYCLE} bands, columns of "
            "norm 1",
            f"cyclic_poisson --n {{n}} --m {{m}} --cycle {CYCLE} --steps {{steps}} --bands {CYCLE}",
            _banded,
        ),
        MappedScheme(
            "min_separation",
            KEPT,
            "includes each record independently, but not within the nine steps after one that had "
            "it",
            f"min_separation --n {{n}} --m {{m}} --separation {SEPARATION} --t {{plan.t}} "
            "--epochs 1",
            _min_separation,
        ),
        MappedScheme(
            "persistent_shuffle",
            KEPT,
            "shuffles once, and keeps the order in all epochs",
            f"persistent_shuffle {_SIZES}",
        ),
        MappedScheme(
            "secret_cyclic_poisson",
            KEPT,
            "takes turns among ten random groups, drawn once and kept secret, and includes each "
            "record of the group independently",
            "secret_cyclic_poisson --n {n} --rate {plan.rate} --cycle {plan.cycle} --steps {steps}",
        ),
    )
}
"""All rows of the map."""


def in_group(group: str) -> tuple[str, ...]:
    """Return the names of the schemes of a group."""
    return tuple(name for name, scheme in SCHEMES.items() if scheme.group == group)
