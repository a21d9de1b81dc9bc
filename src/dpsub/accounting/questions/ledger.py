"""Ledgers: lists of releases from the same records, kept as JSON, their privacy cost, and the
releases that a budget still allows."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.questions import words
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.curve import Curve, curve_of
from dpsub.accounting.questions.export import Export, export_of
from dpsub.accounting.questions.plot import check_can_plot
from dpsub.accounting.questions.proof import Proof, relation_of
from dpsub.accounting.questions.question import (
    Question,
    QuestionKeywords,
    QuickKeywords,
    WidthKeywords,
    separated,
)
from dpsub.accounting.questions.search import (
    Calibration,
    Goal,
    LargestKeywords,
    least_noise,
    most_steps,
)
from dpsub.accounting.questions.selection import NumberOfRuns, Selection, select_of
from dpsub.accounting.release import (
    CalibratedKeywords,
    Release,
    ReleaseKeywords,
    as_plain,
    of_plain,
)
from dpsub.errors import ArgumentError, DataError, DpsubError, UnsupportedError
from dpsub.files import locked, read_json, save_file, writable
from dpsub.relations import Relation
from dpsub.sampling import Schedule
from dpsub.sampling.base import Sampler

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 1
"""Version of the JSON that is written and read."""
_ACCURACY = 1e-3  # relative accuracy of numbers that answers about a budget search for


class NextKeywords(QuestionKeywords, ReleaseKeywords, total=False):
    """Releases that may follow those of a ledger, and how bounds on all of them are asked for."""


class NextNoiseKeywords(QuestionKeywords, CalibratedKeywords, total=False):
    """Releases that may follow those of a ledger and whose noise is searched for, and how bounds on
    all of them are asked for."""


class Ledger(words.ShortText):
    """A list of releases of different kinds on the same records, in any order fixed in advance.

    `record` enters releases into the ledger; `add` returns a new ledger that has them as well, and
    leaves this one as it is. Steps of different entries may alternate, within epochs as well
    (docs/proofs/schedules.md, Theorem 31).

    An entry may have a `name`: a second entry of that name is refused, so that a cell of a notebook
    which runs twice does not count twice. Every release draws its samples afresh. Where samples are
    kept, name them (`sample`): a second entry from the same one is refused, as no composition
    theorem covers it (docs/proofs/composition.md).

    Examples
    --------
    >>> import dpsub
    >>> ledger = dpsub.Ledger()
    >>> ledger.record(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=50, name="pretraining")
    >>> more = ledger.add(dpsub.Poisson(0.1), noise_multiplier=4.0, steps=5)
    >>> more.account(delta=1e-6).kind, len(ledger), len(more)
    ('exact', 1, 2)
    >>> ledger.record(dpsub.Poisson(0.1), noise_multiplier=4.0, steps=5)
    >>> [release.steps for release in ledger], ledger.names
    ([50, 5], ('pretraining', None))
    >>> budget = {"epsilon": 2.0, "delta": 1e-6}
    >>> ledger.would_exceed(dpsub.Poisson(0.1), noise_multiplier=4.0, steps=5, **budget)
    False
    >>> left = ledger.steps_left(dpsub.Poisson(0.1), noise_multiplier=4.0, **budget)
    >>> ledger.would_exceed(dpsub.Poisson(0.1), noise_multiplier=4.0, steps=left, **budget)
    False
    """

    def __init__(self, releases: Iterable[Release] = ()) -> None:
        self._releases: list[Release] = []
        self._names: list[str | None] = []
        self._stored: tuple[str, list[dict[str, Any]]] | None = None  # the file, and its entries
        for release in releases:
            self._enter(release)

    def record(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        sample: str | None = None,
        name: str | None = None,
        **described: Unpack[ReleaseKeywords],
    ) -> None:
        """Enter releases of one kind into this ledger, with parameters as in `account`.

        Parameters
        ----------
        sample : str, optional
            Name of the sample that is drawn for them, where it is kept.
        name : str, optional
            Name of this entry.

        Raises
        ------
        ArgumentError
            If an entry has this name already, or as in `account`.
        UnsupportedError
            If an earlier release names the same sample: what has been drawn is fresh once.
        """
        release = Release.of(sampler, n, sample=sample, **described)
        self._enter(release, name)

    def add(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        sample: str | None = None,
        name: str | None = None,
        **described: Unpack[ReleaseKeywords],
    ) -> Self:
        """Return a new ledger with these releases as well; this one stays as it is. Parameters and
        errors as in `record`."""
        longer = type(self)()
        longer._releases, longer._names = [*self._releases], [*self._names]
        longer._stored = self._stored
        longer.record(sampler, n, sample=sample, name=name, **described)
        return longer

    @property
    def names(self) -> tuple[str | None, ...]:
        """Names of the entries, None where one has no name."""
        return tuple(self._names)

    @property
    def adjacency(self) -> Relation | None:
        """The default relation of an account of all entries; None for an empty ledger.

        Guarantees under different relations do not add up, so that one entry may change it.
        """
        return relation_of(self._releases, None) if self._releases else None

    def text(self) -> words.Text:
        """The entries in a few words; `account` says what they cost."""
        return words.ledger_text(self._releases, self.names, self.adjacency)

    def account(
        self,
        *,
        epsilon: ArrayLike | None = None,
        delta: ArrayLike | None = None,
        **asked: Unpack[WidthKeywords],
    ) -> Account:
        """Bound delta at `epsilon`, or epsilon at `delta`, of all releases together; parameters as
        in `account`."""
        return Question.about(self._releases, **asked).account(epsilon, delta)

    def statement(
        self,
        clip: float | str = "C",
        prior: float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: str | None = None,
    ) -> words.Statement:
        """Return the sentence and the table for a paper, of all releases together; parameters as in
        `account` and `Account.statement`."""
        found = self.account(epsilon=epsilon, delta=delta, adjacency=adjacency)
        return found.statement(clip, prior)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: str | None = None,
    ) -> Figure:
        """Draw both bounds after each entry, and write the picture if a path is given; parameters
        as in `account`, errors as in `Account.plot`."""
        check_can_plot(path)
        return self.account(epsilon=epsilon, delta=delta, adjacency=adjacency).plot(path)

    def curve(
        self,
        *,
        epsilon: ArrayLike | None = None,
        **asked: Unpack[WidthKeywords],
    ) -> Curve:
        """Return the privacy curve of all releases together; parameters as in `dpsub.curve`."""
        return curve_of(Question.about(self._releases, **asked), epsilon)

    def export(
        self,
        *,
        step: float | None = None,
        **asked: Unpack[WidthKeywords],
    ) -> Export:
        """Return the composed privacy loss distributions as plain arrays, to save or to use with
        dp-accounting: rounded up and down, in both directions.

        Parameters
        ----------
        step : float, optional
            Of the grid, nats; by default a 48th of the deviation of one loss, and finer where that
            brings the bounds closer.
        adjacency, width, effort, time_limit, quick
            As in `dpsub.curve`; the width is that of the deltas 1e-2, 1e-4, 1e-6 and 1e-8. The laws
            of the first bound are made in any case.
        """
        return export_of(Question.about(self._releases, **asked), step)

    def select(
        self,
        *,
        runs_mean: float,
        distribution: str = "geometric",
        shape: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        **asked: Unpack[QuickKeywords],
    ) -> Selection:
        """Bound the best of a random number of runs. Each run makes all these releases;
        parameters as in `dpsub.select`."""
        runs = NumberOfRuns(distribution, runs_mean, shape)
        return select_of(self._releases, runs, epsilon, delta, **asked)

    def would_exceed(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        epsilon: float,
        delta: float,
        **described: Unpack[NextKeywords],
    ) -> bool:
        """Whether these releases, after all that were entered, are *not* proved to stay within
        (epsilon, delta).

        Nothing is entered. Parameters as in `record` and `account`.
        """
        proved = self.epsilon_with(sampler, n, epsilon=epsilon, delta=delta, **described)
        return proved > epsilon

    def epsilon_with(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        epsilon: float,
        delta: float,
        **described: Unpack[NextKeywords],
    ) -> float:
        """Return the epsilon that is proved for the entries followed by these releases, which
        `would_exceed` compares with the budget; infinite if the effort suffices for none.

        Nothing is entered. Parameters as in `record` and `account`.
        """
        released, asked = separated(NextKeywords, described)
        question = self._followed_by([Release.of(sampler, n, **released)], asked)
        with question.metered():
            return _upper(question, _target(epsilon, delta))

    def steps_left(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        noise_multiplier: float | None = None,
        sigma: float | None = None,
        epsilon: float,
        delta: float,
        **described: Unpack[LargestKeywords],
    ) -> int:
        """Return how many such releases may follow the entries within (epsilon, delta), by what is
        proved: for a schedule, a number of steps that makes whole epochs.

        A thousandth more of them is not proved, or was not within the effort. Parameters as in
        `record` and `account`.
        """
        released, asked = separated(LargestKeywords, described)
        release = Release.one_of(
            sampler, n, noise_multiplier=noise_multiplier, sigma=sigma, **released
        )
        question = self._followed_by([release], asked)
        target = _target(epsilon, delta)
        with question.metered():
            if _upper(question, target) > epsilon:
                return 0
            try:
                goal = Goal(epsilon, delta, question.adjacency, _ACCURACY)
                most = most_steps(release, self._releases, goal).value
            except OutOfWorkError:
                most = 1  # no more were proved within the budget
        return int(most) * release.steps

    def calibrate(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        epsilon: float,
        delta: float,
        accuracy: float = _ACCURACY,
        **described: Unpack[NextNoiseKeywords],
    ) -> Calibration:
        """Find a noise multiplier of further releases with which all together are proved (epsilon,
        delta)-DP.

        Parameters, answer and errors as in `dpsub.calibrate`; UnsupportedError also if what was
        entered exceeds the target already.
        """
        released, asked = separated(NextNoiseKeywords, described)
        release = Release.to_calibrate(sampler, n, **released)
        question = self._followed_by([], asked)
        target = _target(epsilon, delta)
        with question.metered():
            spent = _upper(question, target) if self._releases else 0.0
            if spent > epsilon:
                raise UnsupportedError(
                    "the releases entered so far already give epsilon up to "
                    f"{spent:.4g}, above the target {epsilon:g}; raise the target"
                )
            goal = Goal(epsilon, delta, question.adjacency, accuracy)
            return least_noise(release, self._releases, goal)

    def as_plain(self) -> list[dict[str, Any]]:
        """Return the entries as in JSON."""
        return [
            as_plain(release) | ({} if name is None else {"name": name})
            for release, name in zip(self._releases, self._names, strict=True)
        ]

    def save(self, path: str | Path) -> None:
        """Write the ledger as JSON; the name only ever stands for a complete file.

        Raises
        ------
        DataError
            If the file cannot be written, is no ledger, or has entries that this ledger does not
            know: others have entered them since it was loaded, and a ledger forgets nothing. `open`
            keeps them waiting instead.
        """
        file = writable(path)
        with locked(file):
            if file.exists():
                self._check_knows(file)
            self._write(file)

    def _write(self, file: Path) -> None:
        document = {"dpsub_ledger": SCHEMA, "releases": self.as_plain()}
        save_file(file, f"{json.dumps(document, indent=1, allow_nan=False)}\n".encode())
        self._stored = (os.path.realpath(file), self.as_plain())

    def _check_knows(self, file: Path) -> None:
        """Raise DataError if a file has entries that would be lost."""
        stored = type(self).load(file).as_plain()
        # what it had when this ledger came from it; else how this ledger begins
        before = self.as_plain()[: len(stored)]
        if self._stored is not None and self._stored[0] == os.path.realpath(file):
            before = self._stored[1]
        if stored != before:
            raise DataError(
                f"the ledger {file} has entries, {len(stored)} in all, that this one does not have "
                "or has otherwise; enter into what Ledger.open gives, or save under another name"
            )

    @classmethod
    @contextmanager
    def open(cls, path: str | Path) -> Iterator[Self]:
        """Open the ledger of a file, or an empty one if there is none, to enter releases.

        Other programs that open it wait; it is saved at the end, unless an error occurs. Two
        programs that enter releases at once both find their entries in the file. One that is killed
        leaves the file as it was. The lock is one of the kernel (`flock`), on a file `.NAME.lock`
        next to the ledger, which stays. Other hosts wait if their file system passes locks on
        (docs/guarantees.md, What a ledger promises).

        Raises
        ------
        DataError
            As `load` and `save`, or if the file cannot be locked.

        Examples
        --------
        >>> import dpsub, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with dpsub.Ledger.open(f"{folder.name}/ledger.json") as ledger:
        ...     ledger.record(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=50)
        >>> len(dpsub.Ledger.load(f"{folder.name}/ledger.json"))
        1
        >>> folder.cleanup()
        """
        file = writable(path)
        with locked(file):
            ledger = cls.load(file) if file.exists() else cls()
            before = len(ledger)
            yield ledger
            if len(ledger) > before:
                ledger._write(file)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ledger that `save` wrote, number by number the same; DataError if the file is not
        one."""
        document = _read(path)
        if not isinstance(document, Mapping) or "dpsub_ledger" not in document:
            raise DataError(
                f"{path} is not a ledger of dpsub: it has no entry dpsub_ledger; name a "
                "file that save wrote"
            )
        # True and 1.0 are equal to 1, and are not what save wrote
        version = document["dpsub_ledger"]
        if type(version) is not int or version != SCHEMA:
            raise DataError(
                f"the ledger {path} must have schema version {SCHEMA}, got {version!r}; read it "
                "with the dpsub that wrote it"
            )
        entries = document.get("releases")
        if not isinstance(entries, list):
            raise DataError(f"the ledger {path} has no list of releases; restore it from a copy")
        # a misspelt second list would be forgotten
        if more := sorted(set(document) - {"dpsub_ledger", "releases"}):
            raise DataError(
                f"the ledger {path} must have the entries dpsub_ledger and releases alone, got "
                f"{more[0]!r}; restore it from a copy"
            )
        ledger = cls()
        for place, entry in enumerate(entries, start=1):
            try:
                # an entry without a name has no such field
                named = dict(entry) if isinstance(entry, Mapping) else {}
                name = named.pop("name", None)
                ledger._enter(of_plain(named or entry), name)
            except DpsubError as error:
                raise DataError(
                    f"release {place} of the ledger {path} cannot be read: {error}"
                ) from None
        ledger._stored = (os.path.realpath(path), ledger.as_plain())
        return ledger

    def _followed_by(self, more: Sequence[Release], asked: Mapping[str, Any]) -> Question:
        """Return the question about the entries and some further releases."""
        return Question.about([*self._releases, *more], **asked)

    def _enter(self, release: Release, name: str | None = None) -> None:
        if not isinstance(name, str | None):
            raise ArgumentError(f"the name of an entry must be a text, got {name!r}; give one")
        if name is not None and name in self._names:
            raise ArgumentError(
                f"every entry needs a name of its own, got {name!r}, which entry "
                f"{1 + self._names.index(name)} has; leave this one out if it is recorded "
                "already, or give it another name"
            )
        if release.sample is not None:
            for place, known in enumerate(self._releases, start=1):
                if release.sample == known.sample:
                    joint = _joint(known, release)
                    raise UnsupportedError(
                        _SAME.format(sample=release.sample, place=place, joint=joint)
                    )
        self._releases.append(release)
        self._names.append(name)

    def __iter__(self) -> Iterator[Release]:
        return iter(self._releases)

    def __len__(self) -> int:
        return len(self._releases)


def _upper(question: Question, target: Target) -> float:
    """Return the proved epsilon of the releases of a question."""
    try:
        return float(Proof.of(question.releases, question.adjacency).upper(target).upper)
    except OutOfWorkError:
        return math.inf  # nothing was proved


def _target(epsilon: float, delta: float) -> Target:
    """Return a target for epsilon at this delta, sharp enough to be compared with the one of a
    budget."""
    width = max(checks.real("epsilon", epsilon, at_least=0) * _ACCURACY, 1e-9)
    return Target(delta=delta, width=width)


def _read(path: str | Path) -> Any:
    """Read a file of JSON, in which every key stands once."""
    try:
        return read_json(path)
    except OSError as error:
        raise DataError(
            f"the ledger {path} cannot be read: {error.strerror}; name an existing file"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"the ledger {path} is not complete JSON ({error}); restore it from a copy"
        ) from None


_SAME = (
    "every release needs a fresh sample, got {sample!r}, already used by release "
    "{place}; enter both queries as one release{joint} if both are asked before either "
    "is answered, or equal ones with releases_per_sample, or draw a new sample"
)


def _joint(one: Release, other: Release) -> str:
    """Return the noise multiplier of two Gaussian queries as one: vectors over their noise have
    norms of at most 1 / s_1 and 1 / s_2, and together of at most the root of the sum of squares."""
    if (one.mechanism, other.mechanism) != ("gaussian", "gaussian"):
        return ""
    joint = 1 / math.hypot(1 / one.noise_multiplier, 1 / other.noise_multiplier)
    return f" of noise_multiplier {joint * (1 - 1e-5):.6g}"  # to enter less noise is safe
