"""The accountant within Opacus itself, in an environment of its own: torch is no dependency."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
TRAINING = """
import io, warnings
warnings.simplefilter("ignore")
import torch
from opacus import PrivacyEngine
from opacus.accountants import IAccountant, create_accountant
from torch.utils.data import DataLoader, TensorDataset
import dpsub, dpsub.opacus

dpsub.opacus.register()
torch.manual_seed(0)
data = TensorDataset(torch.randn(200, 3), torch.randint(0, 2, (200,)))

def private(make, **options):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=30, shuffle=True)
    return make(
        module=model, optimizer=optimizer, data_loader=loader, max_grad_norm=1.0, **options
    )

engine = PrivacyEngine(accountant="dpsub")
assert isinstance(engine.accountant, IAccountant)
model, optimizer, loader = private(engine.make_private, noise_multiplier=1.1)
for _ in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
run = dpsub.from_loader(200, 30, noise_multiplier=1.1, epochs=2, poisson=True)
[release] = run.releases
assert engine.accountant.history == [(1.1, release.sampler.rate, release.steps)]
found = run.account(delta=1e-5)
assert found.lower <= engine.get_epsilon(1e-5) <= found.upper * 1.001
prv = create_accountant("prv")
prv.history = engine.accountant.history
assert abs(prv.get_epsilon(1e-5) - engine.get_epsilon(1e-5)) < 0.02

other = PrivacyEngine(accountant="dpsub")
target = {"target_epsilon": 3.0, "target_delta": 1e-5, "epochs": 2}
again, noisy, _ = private(other.make_private_with_epsilon, **target)
account = {"steps": release.steps, "delta": 1e-5}
reached = dpsub.account(release.sampler, noise_multiplier=noisy.noise_multiplier, **account)
assert 2.9 < reached.upper <= 3.001

buffer = io.BytesIO()
engine.save_checkpoint(path=buffer, module=model, optimizer=optimizer)
buffer.seek(0)
other.load_checkpoint(path=buffer, module=again)
assert other.accountant.history == engine.accountant.history
print("trained")
"""


GIVEN = os.environ.get("DPSUB_OPACUS_PYTHON", "")
"""Return a Python with Opacus, where somebody has one."""


@pytest.fixture(scope="module")
def new_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of a new environment, into which Opacus is installed."""
    place = tmp_path_factory.mktemp("opacus")
    venv.create(place, with_pip=True)
    program = str(place / "bin/python")
    installed = subprocess.run(
        [program, "-m", "pip", "install", "--quiet", "opacus"],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"Opacus cannot be installed here: {installed.stderr.strip()[-200:]}")
    return program


@pytest.mark.thorough
@pytest.mark.skipif(not GIVEN, reason="DPSUB_OPACUS_PYTHON names no Python with Opacus")
def test_a_training_with_opacus_is_accounted() -> None:
    train(GIVEN)


@pytest.mark.slow
def test_a_training_in_a_new_environment_is_accounted(new_python: str) -> None:
    train(new_python)


def train(python: str) -> None:
    done = subprocess.run(
        [python, "-c", TRAINING],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.strip() == "trained", done.stderr[-3000:]
