"""Public names that are resolved on first use (PEP 562), so that importing a package loads neither torch nor SciPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    namespace: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``.

    Args:
        namespace: the package's ``globals()``; a name that was resolved is kept there.
        homes: public name -> the module that holds it.
    """

    def resolve(name: str) -> object:
        """Import the file that holds a public name when the name is first asked for."""
        if name not in homes:
            known = ", ".join(namespace["__all__"])
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}; its names are {known}")
        namespace[name] = value = getattr(import_module(homes[name]), name)
        return value

    def names() -> list[str]:
        """List the public names, loaded or not."""
        return sorted({*namespace, *namespace["__all__"]})

    return resolve, names
