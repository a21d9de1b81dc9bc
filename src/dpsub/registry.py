"""Registration by discovery: every concrete subclass in the modules of a package is a member."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from dpsub import checks
from dpsub.errors import PlanError

T = TypeVar("T")


def _name(member: type) -> str | None:
    name = member.__dict__.get("name")
    return name if isinstance(name, str) else None


def _in_common(one: str, other: str) -> int:
    """Length of the beginning that two strings share."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


class Registry(Generic[T]):
    """All concrete subclasses of `base` defined in the modules of `package`, by their class
    attribute `name`.

    Parameters
    ----------
    package
        Dotted name, whose modules are imported on first use; PlanError if two members share a name.
    base
        The abstract class that members extend.
    noun
        What a member is called in messages ("sampler").
    inside
        Only modules with one of these parts in their dotted name are imported; None for all.
    key
        Name of a member, None for a class that is not one; default is the class attribute `name`.
    """

    def __init__(
        self,
        package: str,
        base: Any,
        noun: str,
        *,
        inside: str | tuple[str, ...] | None = None,
        key: Callable[[type], str | None] = _name,
    ) -> None:
        self._package, self._base, self._noun, self._key = package, base, noun, key
        self._inside = (inside,) if isinstance(inside, str) else inside
        self._found: dict[str, type[T]] = {}  # members of the modules that have been loaded so far

    @cached_property
    def _members(self) -> dict[str, type[T]]:
        members: dict[str, type[T]] = {}
        for module in self._modules:
            for name, member in self._defined(module):
                if name in members:
                    both = f"{members[name].__module__} and {member.__module__}"
                    raise PlanError(f"two {self._noun}s are named {name!r} ({both}); rename one")
                members[name] = member
        return dict(sorted(members.items()))

    @cached_property
    def _modules(self) -> list[str]:
        root = importlib.import_module(self._package)
        modules = [
            info.name for info in pkgutil.walk_packages(root.__path__, prefix=f"{self._package}.")
        ]
        return [
            name for name in modules if self._inside is None or {*self._inside} & {*name.split(".")}
        ]

    def _defined(self, module_name: str) -> list[tuple[str, type[T]]]:
        """Names and classes of the members that one module defines."""
        return self._members_in(importlib.import_module(module_name))

    def _members_in(self, module: ModuleType) -> list[tuple[str, type[T]]]:
        return [
            (name, cast("type[T]", member))
            for member in vars(module).values()
            if inspect.isclass(member)
            and member.__module__ == module.__name__
            and issubclass(member, self._base)
            and not inspect.isabstract(member)
            and (name := self._key(member)) is not None
        ]

    def take(self, module: ModuleType) -> list[str]:
        """Enter the members that a module outside of the package defines, and return their names;
        PlanError if one has the name of another member."""
        taken = self._members_in(module)
        for name, member in taken:
            if name in self._members:
                raise PlanError(
                    f"the {self._noun} {name!r} of {module.__file__} has the name of another one; "
                    "rename it"
                )
            self._members[name] = member
        return [name for name, _ in taken]

    def names(self) -> tuple[str, ...]:
        """Sorted names of all members."""
        return tuple(self._members)

    def members(self) -> dict[str, type[T]]:
        """Members by name."""
        return dict(self._members)

    def get(self, name: str) -> type[T]:
        """Return the member called `name`, else propose the nearest name."""
        if name in self._found:
            return self._found[name]
        if "_members" not in self.__dict__:
            # A job needs one member of many, without all that the others import: look into likely
            # modules first.
            *folders, wanted = name.split("/")
            for module in sorted(
                self._modules,
                key=lambda path: (
                    not {*folders} <= {*path.split(".")},
                    # the module, or its paper's folder
                    -max(_in_common(part, wanted) for part in path.split(".")),
                ),
            ):
                self._found |= self._defined(module)
                if name in self._found:
                    return self._found[name]
        return self._members[checks.one_of(self._noun, name, self._members)]
