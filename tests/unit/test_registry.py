"""Registration by discovery."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsub.errors import ArgumentError, PlanError
from dpsub.registry import Registry

BASE = """
import abc
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Round(Shape):
    '''Concrete in part only: no member.'''
"""
DISC = (
    "from {p}.base import Shape\nclass Disc(Shape):\n    name = 'disc'\n    def area(self): "
    "return 3\n"
)

Build = Callable[..., Registry]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """Write a package of modules and return a registry over it."""
    names: list[str] = []

    def make(**modules: str) -> Registry:
        package = f"shapes_{len(names)}_{tmp_path.name.replace('-', '_')}"
        names.append(package)
        folder = tmp_path / package
        folder.mkdir()
        for module, text in {"__init__": "", "base": BASE, **modules}.items():
            (folder / f"{module}.py").write_text(text.replace("{p}", package))
        base = __import__(f"{package}.base", fromlist=["Shape"]).Shape
        return Registry(package, base, "shape")

    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    for loaded in [m for m in sys.modules if m.split(".")[0] in names]:
        del sys.modules[loaded]


def test_members_are_found_in_files(build: Build) -> None:
    registry = build(disc=DISC, tile=DISC.replace("Disc", "Tile").replace("'disc'", "'tile'"))
    assert registry.names() == ("disc", "tile")
    assert registry.get("tile")().area() == 3
    assert set(registry.members()) == {"disc", "tile"}


def test_a_member_is_had_without_the_modules_of_others(build: Build) -> None:
    tile = DISC.replace("Disc", "Tile").replace("'disc'", "'tile'")
    registry = build(heavy="raise RuntimeError('loaded')", disc=DISC, tiles=tile)
    assert registry.get("disc")().area() == 3
    assert registry.get("tile")().area() == 3  # module of another name, but alike
    with pytest.raises(RuntimeError, match="loaded"):
        registry.names()


def test_only_concrete_classes_with_a_name_of_their_own_are_members(build: Build) -> None:
    more = (
        "from {p}.disc import Disc\n"  # imported, not defined here
        "class Smaller(Disc):\n    pass\n"  # inherits its name
        "class Abstract(Disc.__mro__[1]):\n    name = 'abstract'\n"
        "class Other:\n    name = 'other'\n"
    )
    assert build(disc=DISC, more=more).names() == ("disc",)


def test_names_are_unique(build: Build) -> None:
    registry = build(disc=DISC, again=DISC.replace("Disc", "Again"))
    with pytest.raises(
        PlanError,
        match=r"^two shapes are named 'disc' \(.*[.]again and "
        r".*[.]disc\); rename one$",
    ):
        registry.names()


def test_unknown_names_get_the_nearest(build: Build) -> None:
    with pytest.raises(ArgumentError, match=r"^unknown shape 'dsc'; did you mean 'disc'[?]$"):
        build(disc=DISC).get("dsc")
