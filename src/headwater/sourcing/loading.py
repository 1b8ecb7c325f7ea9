"""Finds the decider that a user's file declares, as pipelines are found."""

from __future__ import annotations

import os

from headwater.errors import UsageError, nearest
from headwater.pipeline.loading import load_module, split_path
from headwater.sourcing.decider import Decider
from headwater.sourcing.uniqueness import UniqueValues


def load_decider(path: str | os.PathLike[str]) -> Decider:
    """Run a file and return its decider: the only one, or the one of a name: ``bank.py:account``.

    - ``path``: the file, and the decider's name or that of its variable; for ``unique("username")`` also
      ``username``.
    """
    file, name = split_path(os.fspath(path))
    found = dict[str, Decider]()
    names = dict[str, Decider]()
    for variable, each in vars(load_module(file)).items():
        if isinstance(each, Decider):
            found[variable] = names[each.name] = each
        elif isinstance(each, UniqueValues):
            found[variable] = names[each.decider.name] = each.decider
            found.setdefault(each.name, each.decider)
    if name is not None and (name in names or name in found):
        return names.get(name) or found[name]
    if name is not None:
        raise UsageError(f'no decider "{name}" in "{file}"', hint=nearest(name, names) or _listed(names))
    if len(names) != 1:
        count = "no decider" if not names else f"{len(names)} deciders"
        hint = f'name one, as in "{file}:{next(iter(names))}"' if names else "declare one, as in Decider(…)"
        raise UsageError(f'"{file}" has {count}', hint=hint)
    return next(iter(names.values()))


def _listed(names: dict[str, Decider]) -> str | None:
    return "it has: " + ", ".join(names) if names else None
