"""The multiplicity law: how often one fixed record occurs in a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsub.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class MultiplicityLaw:
    """P(L = l) for l = 0..l_max, the law of the number of copies of one fixed record.

    It is all that privacy analysis needs to know of a sampler that treats all records alike: amplification, accountants
    and the efficiency tables read it (w_u in MUST, Theorem 5).

    Attributes
    ----------
    log_pmf : ndarray, shape (l_max + 1,)
        Natural logarithms of the probabilities; -inf for impossible counts.

    Raises
    ------
    ArgumentError
        If the array is not one-dimensional, has NaN, or the probabilities do not sum to 1 within 1e-9.

    Examples
    --------
    >>> from dpsub.samplers import Wr
    >>> law = Wr(2).multiplicity_law(4)     # two draws with replacement from four records
    >>> law.pmf.round(12).tolist()          # (3/4)^2, 2 (1/4) (3/4), (1/4)^2
    [0.5625, 0.375, 0.0625]
    >>> round(law.eta, 12), round(law.mean, 12)
    (0.4375, 0.5)
    """

    log_pmf: np.ndarray

    def __post_init__(self) -> None:
        log_pmf = np.array(self.log_pmf, dtype=float)
        if log_pmf.ndim != 1 or log_pmf.size == 0 or np.isnan(log_pmf).any():
            raise ArgumentError(f"a multiplicity law is a 1-d array without NaN, got shape {log_pmf.shape}")
        total = float(np.exp(log_pmf).sum())
        if abs(total - 1) > 1e-9:
            raise ArgumentError(f"a multiplicity law must sum to 1, got a sum of {total!r}")
        log_pmf.flags.writeable = False
        object.__setattr__(self, "log_pmf", log_pmf)

    @classmethod
    def single(cls, inclusion_probability: float) -> MultiplicityLaw:
        """Return the law of a sampler that takes a record at most once (Poisson, without replacement)."""
        with np.errstate(divide="ignore"):
            return cls(np.array([np.log1p(-inclusion_probability), np.log(inclusion_probability)]))

    @property
    def pmf(self) -> np.ndarray:
        """Probabilities, shape (l_max + 1,)."""
        return np.exp(self.log_pmf)

    @property
    def eta(self) -> float:
        """Inclusion probability, the sum over l >= 1 (never formed as 1 - P(L = 0))."""
        return float(np.exp(self.log_pmf[:0:-1]).sum())

    @property
    def log_eta(self) -> float:
        """log of the inclusion probability, where that underflows."""
        return float(np.logaddexp.reduce(self.log_pmf[:0:-1], initial=-np.inf))

    @property
    def mean(self) -> float:
        """E[L]: the expected number of copies."""
        return float(np.arange(len(self.log_pmf)) @ self.pmf)
