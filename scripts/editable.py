# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Installs the package in place, as `maturin develop` does, without building the compiled core.

It makes a wheel with the package's metadata and the path to its source, which pip installs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Makes the wheel and installs it in this interpreter's environment."""
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory(prefix="warifu-editable-") as name:
        folder = Path(name)
        subprocess.run(
            [python.with_name("maturin"), "pep517", "write-dist-info", "--quiet", "--locked",
             "--metadata-directory", folder, "--interpreter", python],
            cwd=ROOT, check=True, capture_output=True,
        )  # fmt: skip
        (info,) = folder.glob("*.dist-info")
        paths = (path for path in info.rglob("*") if path.is_file())
        files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        files["warifu.pth"] = f"{ROOT / 'python'}\n".encode()
        record = f"{info.name}/RECORD"
        listed = sorted({*files, record})
        files[record] = "".join(f"{file},,\n" for file in listed).encode()
        wheel = folder / f"{info.name.removesuffix('.dist-info')}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for file, content in files.items():
                archive.writestr(file, content)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
             "--no-deps", "--force-reinstall", wheel],
            check=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
