"""The finished run that a report is about: its artefacts, comparison, data and errata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dpsub.reproduce import experiments
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.report import numbers
from dpsub.reproduce.report.errata import Erratum, read


@dataclass(frozen=True)
class FinishedRun:
    """A run that has made all its artefacts."""

    artefacts: Sequence[Artefact]
    """What the run has made."""
    dirs: OutputDirs
    comparison: pd.DataFrame
    """All printed numbers next to ours, as in ``results/comparison.csv``."""
    data: Sequence[Mapping[str, Any]]
    """Descriptions of the prepared data sets, each with `dataset` and `label` ("real", "synthetic",
    ...)."""
    errata: Sequence[Path]
    provenance: Mapping[str, str]
    """For the foot of the page: seed, commit, digests."""
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """`versions` and `installed`, from describe_run.py."""
    configuration: str = ""
    timings: Path | None = None
    """Folder of what Snakemake measured of the jobs of experiments."""
    twins: Sequence[str] = ()
    """Data sets for which experiments make synthetic twins from the paper's own table of its
    data."""
    remarks: Sequence[str] = ()
    """What a reader must know first, such as that the run is of reduced size."""
    published: Sequence[str] | None = None
    """Artefacts that are made at published settings, by their identifiers; None if all are."""
    options: str = ""
    """Of Snakemake, to make this run again, in any folder; none if it is of `config.yaml` alone."""

    @property
    def labels(self) -> dict[str, str]:
        """Label of each data set."""
        return {str(description["dataset"]): str(description["label"]) for description in self.data}

    def data_sets(self, artefact: Artefact) -> set[str]:
        """Return the data sets behind an artefact."""
        needed: set[str] = set()
        for name in artefact.experiments:
            # What an experiment may read; of these the run has described what it did read.
            needed.update(experiments.REGISTRY.get(name).needs_data)
        return needed & set(self.labels)

    def data_label(self, artefact: Artefact) -> str:
        """Return what the data behind an artefact are: "simulated", "real", or what they stand in
        for the real ones."""
        labels = {self.labels[name] for name in self.data_sets(artefact)}
        # one stand-in among real data sets is enough to say so
        return ", ".join(sorted(labels - {"real"})) or ("real" if labels else "simulated")

    @cached_property
    def lines(self) -> list[numbers.Line]:
        """Every printed number."""
        labels = {artefact.identifier: self.data_label(artefact) for artefact in self.artefacts}
        return numbers.lines(self.comparison, self.artefacts, labels)

    @cached_property
    def listed(self) -> list[Erratum]:
        """The errata of its papers."""
        return [erratum for erratum in read(self.errata) if erratum.paper in self.papers]

    @property
    def papers(self) -> list[str]:
        """Keys of the papers, each of which has a page."""
        of_artefacts = [artefact.paper for artefact in self.artefacts]
        of_lines = [line.paper for line in self.lines]
        # A paper of which only a comparison is there has a page as well.
        return list(dict.fromkeys([*of_artefacts, *of_lines]))
