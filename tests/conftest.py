"""Settings of all tests: generated examples are the same in every run, and slow machines do not fail by the clock."""

from __future__ import annotations

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("dpsub", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("dpsub")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give each test to the next free worker, but all of `tests/cluster` to one: there is one Slurm on a machine.

    The mark `xdist_group` of pytest-xdist 3.8 has no effect with pytest 9.2, where names of tests cannot be changed.
    """
    return OneSlurm(config, log)


class OneSlurm(LoadScopeScheduling):
    """Tests one by one, those of the cluster as one piece of work."""

    def _split_scope(self, nodeid: str) -> str:
        return "slurm" if nodeid.startswith("tests/cluster/") else nodeid
