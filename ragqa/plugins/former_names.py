"""Makes modules importable under their names in ragqa 0.2.0, for packages written for it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

FORMER_NAMES: Final = {  # modules that 0.2.0 documented, and those that parts of other packages need
    "ragqa.access": "ragqa.server.access",
    "ragqa.access.policy": "ragqa.server.access.policy",
    "ragqa.config": "ragqa.settings.config",
    "ragqa.events": "ragqa.types.events",
    "ragqa.events.generation": "ragqa.types.events.generation",
    "ragqa.events.pipeline": "ragqa.types.events.pipeline",
    "ragqa.events.scoring": "ragqa.types.events.scoring",
    "ragqa.indexing": "ragqa.index",
    "ragqa.manifest": "ragqa.index.manifest",
    "ragqa.paths": "ragqa.settings.paths",
    "ragqa.presets": "ragqa.settings.presets",
    "ragqa.protocols": "ragqa.plugins.protocols",
    "ragqa.record_store": "ragqa.records.store",
    "ragqa.registry": "ragqa.plugins.registry",
    "ragqa.repass": "ragqa.scoring.repass",
    "ragqa.repass.scorer": "ragqa.scoring.repass.scorer",
    "ragqa.scores": "ragqa.types.scores",
    "ragqa.sentences": "ragqa.english.sentences",
    "ragqa.streams": "ragqa.types.streams",
    "ragqa.thread": "ragqa.conversation",
    "ragqa.thread.before": "ragqa.conversation.history",
    "ragqa.verdicts": "ragqa.scoring.verdicts",
    "ragqa.verdicts.judge": "ragqa.scoring.verdicts.judge",
}


class _Loader(Loader):
    """Loads the module under its present name: one object under both names."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just put the former name there


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = FORMER_NAMES.get(fullname)
        if name is None:
            return None
        msg = f"the module {fullname} is now {name}; import it from there"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Loader(name), is_package=False)


def install() -> None:
    """Makes the former names importable; called once, when ragqa is imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
