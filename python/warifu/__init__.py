# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What securing an IoT connection costs: predicted, measured, and how far apart the two are.

    import warifu
    asked = warifu.ask(device="gr-peach", link="lte-m", stack="https/tls1.3")
    print(asked)
    asked.frame().write_csv("answer.csv")
    asked.report("answer.html")

Mistakes in a question are exceptions whose text is one line that names the fix. Names are imported
when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warifu._core import CaseView, Study, WarifuError, __version__, predict, trace_text
    from warifu.answer import Answer
    from warifu.files import FileRefused
    from warifu.lock import FolderBusy
    from warifu.prediction import AnotherStudy
    from warifu.question import Prediction, ask
    from warifu.results import Results, ResultsDamaged, ResultsError
    from warifu.study import Loaded, StudyError, load

__all__ = [
    "AnotherStudy",
    "Answer",
    "CaseView",
    "FileRefused",
    "FolderBusy",
    "Loaded",
    "Prediction",
    "Results",
    "ResultsDamaged",
    "ResultsError",
    "Study",
    "StudyError",
    "WarifuError",
    "__version__",
    "ask",
    "load",
    "predict",
    "trace_text",
]

_HOMES = {
    "warifu._core": ("CaseView", "Study", "WarifuError", "__version__", "predict", "trace_text"),
    "warifu.answer": ("Answer",),
    "warifu.files": ("FileRefused",),
    "warifu.lock": ("FolderBusy",),
    "warifu.prediction": ("AnotherStudy",),
    "warifu.question": ("Prediction", "ask"),
    "warifu.results": ("Results", "ResultsDamaged", "ResultsError"),
    "warifu.study": ("Loaded", "StudyError", "load"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
