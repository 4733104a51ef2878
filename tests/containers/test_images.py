# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The steps of Dockerfile and .devcontainer, as they stand there, from empty root folders.

`make container-test` runs them: it takes packages from the network, and compiles everything twice.
What a container engine does beside that (layers, the images of Debian and Rust themselves,
isolation) is not tested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import needs
from support.images import Root, Stage, copy, debian, stages
from support.paths import ROOT

pytestmark = [needs.root, needs.program("debootstrap"), needs.program("unshare")]

STAGES = stages((ROOT / "Dockerfile").read_text(encoding="utf-8"))
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
#: The development build: what the release build adds is time.
FAST = {"SETUP": "", "WHEEL": "--dev"}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Root]]:
    """By stage; each is made once, in the order of the tests."""
    yield {}


def stage(name: str) -> Stage:
    return next(one for one in STAGES if one.name == name)


def test_a_clone_is_set_up_in_the_dev_container(
    roots: dict[str, Root], tmp_path_factory: pytest.TempPathFactory
) -> None:
    develop = stage(CONTAINER["build"]["target"])
    assert develop.base.startswith("rust:")
    root = debian(tmp_path_factory.mktemp("develop") / "root", "bookworm", toolchain=True)
    root.build(develop, ROOT, {}, {})
    roots[develop.name] = root
    folder = str(CONTAINER["workspaceFolder"])
    copy(ROOT, root.path / folder.lstrip("/"), ROOT, [".venv", "target", "results", "**/*.so"])
    root.run(str(CONTAINER["postCreateCommand"]), folder=folder)
    said = root.run(
        ".venv/bin/warifu predict --device xeon-2-5-ghz-vm --server xeon-2-5-ghz-vm --link lte-m "
        "--set predict_trials=100", folder=folder,
    )  # fmt: skip
    assert "xeon-2-5-ghz-vm" in said


def test_the_image_answers(
    roots: dict[str, Root], tmp_path_factory: pytest.TempPathFactory
) -> None:
    build, last = stage("build"), STAGES[-1]
    assert build.base == "develop"
    root = roots[build.base]
    root.build(build, ROOT, {}, FAST)
    assert [one.suffix for one in sorted((root.path / "wheels").iterdir())] == [".lock", ".whl"]
    assert last.base == "debian:bookworm-slim"
    image = debian(tmp_path_factory.mktemp("image") / "root", "bookworm", toolchain=False)
    image.build(last, ROOT, {build.name: root}, {})
    assert image.start("version").startswith("warifu 0.")
    host = "xeon-2-5-ghz-vm"
    ends = ("--device", host, "--server", host)
    said = image.start("predict", *ends, "--link", "lte-m", "--set", "predict_trials=100")
    assert host in said
    assert "Usage" in image.start()
    # All that measuring runs is in the image; rights and devices are given to a container.
    assert "is missing" not in image.run("warifu doctor || true")


def test_the_dev_container_may_make_the_emulated_link() -> None:
    arguments = CONTAINER["runArgs"]
    assert {"--cap-add=NET_ADMIN", "--cap-add=SYS_ADMIN"} <= set(arguments)
    assert "--device=/dev/net/tun" in arguments
    dockerfile = Path(ROOT / ".devcontainer" / CONTAINER["build"]["dockerfile"])
    assert dockerfile.resolve() == ROOT / "Dockerfile"
