"""The finished run that a report is about: its artefacts, comparison, data and errata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dpsub.reproduce import experiments
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.report import numbers
from dpsub.reproduce.report.cells import read_cells
from dpsub.reproduce.report.citation import bibtex, conditions
from dpsub.reproduce.report.errata import Erratum, read

TWIN = "twin"
DATA_WORDS = {
    "real": "real",
    "subset": "a subset of the real records",
    "synthetic": "a synthetic stand-in",
    TWIN: "synthetic twins, made from the paper's table of its data",
}
"""Words for a label of a data set."""


@dataclass(frozen=True)
class FinishedRun:
    """A run that has made all its artefacts."""

    artefacts: Sequence[Artefact]
    """Artefacts that the run has made."""
    dirs: OutputDirs
    comparison: pd.DataFrame
    """All printed numbers next to ours, as in ``results/comparison.csv``."""
    data: Sequence[Mapping[str, Any]]
    """Descriptions of the prepared data sets, each with `dataset` and `label` ("real", "synthetic",
    ...)."""
    errata: Sequence[Path]
    provenance: Mapping[str, str]
    """Entries at the foot of the page: seed, commit, digests."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """`commit`, `date`, `versions` and `installed`, from describe_run.py."""
    citation: Mapping[str, Any] = field(default_factory=dict)
    """Citation of this software, as in CITATION.cff."""
    configuration: str = ""
    timings: Path | None = None
    """Folder of Snakemake's measurements of the jobs of experiments."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of each experiment, as in the configuration; they say which data it reads."""
    remarks: Sequence[str] = ()
    """Remarks that a reader must know first, such as that the run is of reduced size."""
    published: Sequence[str] | None = None
    """Artefacts that are made at published settings, by their identifiers; None if all are."""
    front: Sequence[Mapping[str, str]] = ()
    """Pictures that stand first, whatever the run has made: `title`, `caption` and `file` of
    each."""
    options: str = ""
    """Options of Snakemake that make this run again, in any folder; none if it is of `config.yaml`
    alone."""

    @property
    def made_by(self) -> dict[str, str]:
        """The code that made the run: `version`, `commit` and `date`, and its citation as `bibtex`;
        empty where the run does not say."""
        made_by = {
            "version": self.environment.get("versions", {}).get("dpsub", ""),
            "commit": self.environment.get("commit", ""),
            "date": self.environment.get("date", ""),
        }
        return made_by | {"bibtex": bibtex(self.citation, **made_by) if self.citation else ""}

    @property
    def labels(self) -> dict[str, str]:
        """Label of each data set."""
        return {str(description["dataset"]): str(description["label"]) for description in self.data}

    def data_sets(self, artefact: Artefact) -> dict[str, str]:
        """Return the data sets behind an artefact, each with its label.

        A set that the settings of an experiment list as a twin is made from the paper's own table
        of its data.
        """
        found: dict[str, str] = {}
        for name in artefact.experiments:
            kind, given = experiments.REGISTRY.get(name), self.settings.get(name)
            read = kind().data_of(kind.settings(given)) if given else kind.needs_data
            # data that may be read; the run has described those that it did read
            found |= {one: self.labels[one] for one in read if one in self.labels}
            found |= dict.fromkeys((given or {}).get("sets", {}).get("twins", ()), TWIN)
        return found

    def data_words(self, artefacts: Iterable[Artefact]) -> list[str]:
        """Return a phrase for each kind of data behind some artefacts, the real ones first."""
        found: dict[str, str] = {}
        for artefact in artefacts:
            found |= self.data_sets(artefact)
        names: dict[str, list[str]] = {}
        for name, label in sorted(found.items()):
            names.setdefault(label, []).append(name.replace("_", " "))
        return [
            f"{DATA_WORDS.get(label, label)}: {', '.join(names[label])}"
            + (f" ({len(names[label])} of {len(found)} data sets)" if len(names) > 1 else "")
            for label in sorted(names, key=lambda label: (label != "real", label))
        ]

    def data_label(self, artefact: Artefact) -> str:
        """Return the label of the data behind an artefact: "simulated", "real", or the label of
        stand-ins."""
        labels = set(self.data_sets(artefact).values())
        # of twins and real sets next to each other each number says itself from which it is
        if TWIN in labels:
            return "simulated"
        # one stand-in among real data sets is enough to say so
        return ", ".join(sorted(labels - {"real"})) or ("real" if labels else "simulated")

    def conditions(self, artefact: Artefact) -> str:
        """Return the settings that all numbers of an artefact have in common, for a citation."""
        behind = [self.settings[name] for name in artefact.experiments if name in self.settings]
        return conditions(artefact.name, behind)

    @cached_property
    def lines(self) -> list[numbers.Line]:
        """Every printed number."""
        labels = {artefact.identifier: self.data_label(artefact) for artefact in self.artefacts}
        tables = {
            artefact.identifier: read_cells(self.dirs.files(artefact)["csv"])
            for artefact in self.artefacts
            if artefact.kind != "figure"
        }
        return numbers.lines(self.comparison, self.artefacts, labels, tables)

    @cached_property
    def listed(self) -> list[Erratum]:
        """The errata of its papers."""
        return [erratum for erratum in read(self.errata) if erratum.paper in self.papers]

    @property
    def papers(self) -> list[str]:
        """Keys of the papers; each of them has a page."""
        of_artefacts = [artefact.paper for artefact in self.artefacts]
        of_lines = [line.paper for line in self.lines]
        # A paper of which only a comparison is there has a page as well.
        return list(dict.fromkeys([*of_artefacts, *of_lines]))
