# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What securing an IoT connection costs: predicted, measured, and how far apart the two are.

    import warifu
    loaded = warifu.load("studies/first-loop.toml")
    for case in loaded.study.cases:
        print(case.label)
    results = warifu.Results.open(Path("results/first-loop/predicted"))

Names are imported when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warifu._core import CaseView, Study, WarifuError, __version__, predict, trace_text
    from warifu.results import Results, ResultsError
    from warifu.study import Loaded, StudyError, load

__all__ = [
    "CaseView",
    "Loaded",
    "Results",
    "ResultsError",
    "Study",
    "StudyError",
    "WarifuError",
    "__version__",
    "load",
    "predict",
    "trace_text",
]

_HOMES = {
    "warifu._core": ("CaseView", "Study", "WarifuError", "__version__", "predict", "trace_text"),
    "warifu.results": ("Results", "ResultsError"),
    "warifu.study": ("Loaded", "StudyError", "load"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
