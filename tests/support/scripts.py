# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Scripts that are in no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from support.paths import ROOT


def script(path: str) -> ModuleType:
    """The module of a script, by its path in the project: `scripts/questions.py`."""
    name = f"script_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
