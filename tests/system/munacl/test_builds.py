# SPDX-License-Identifier: Apache-2.0 OR MIT
"""munacl as other build systems build it, from their own lists; and what clang makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from support import needs
from support.munacl_builds import listing
from support.paths import ROOT
from warifu import m3
from warifu.calibrate import board
from warifu.calibrate.errors import CalibrateError
from warifu.reproduce import munacl_checks as checks

Build = Callable[..., Path]
MUNACL = ROOT / "firmware" / "munacl"
MANIFESTS = ("sources.cmake", "library.json", "Warifu.munacl.pdsc")
LINK = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-nostartfiles", "-Wl,--gc-sections"]
LINK += ["-L", str(MUNACL / "boards"), "-T", str(MUNACL / "boards" / "generic.ld")]


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_manifests_have_the_makefiles_lists(tmp_path: Path) -> None:
    run([sys.executable, str(MUNACL / "manifests.py"), str(tmp_path)])
    for name in MANIFESTS:
        assert (tmp_path / name).read_text() == (MUNACL / name).read_text(), name


def test_files_of_manifests_exist() -> None:
    pack = ElementTree.parse(MUNACL / "Warifu.munacl.pdsc")
    names = {file.get("name") for file in pack.iter("file")}
    manifest = json.loads((MUNACL / "library.json").read_text())
    names |= {f"src/{one[2:-1]}" for one in manifest["build"]["srcFilter"] if one[0] == "+"}
    assert len(names) > 30
    assert [name for name in sorted(filter(None, names)) if not (MUNACL / name).exists()] == []


def test_manifests_are_for_a_cortex_m3_and_have_both_folders_of_headers() -> None:
    manifest = json.loads((MUNACL / "library.json").read_text())
    # PlatformIO's names of what docs/reference/m3.md's chips are of, and of Silicon Labs' EFM32.
    assert set(manifest["platforms"]) == {"ststm32", "nxplpc", "atmelsam", "siliconlabsefm32"}
    pack = ElementTree.parse(MUNACL / "Warifu.munacl.pdsc")
    assert {one.get("Dcore") for one in pack.iter("require")} == {"Cortex-M3"}
    for component in pack.iter("component"):
        names = [file.get("name") for file in component.iter("file")]
        assert {"include/", "include/nacl/"} <= set(names)
    assert "depends on CPU_CORTEX_M3" in (MUNACL / "zephyr" / "Kconfig").read_text()


def test_platformio_list_links_the_benchmark(build: Build, tmp_path: Path) -> None:
    manifest = json.loads((MUNACL / "library.json").read_text())["build"]
    sources = [MUNACL / "src" / one[2:-1] for one in manifest["srcFilter"] if one[0] == "+"]
    flags = [flag for text in manifest["flags"] for flag in text.split()]
    program = build("fast", "bench.elf")
    objects = [program.parent / "bench" / "bench.o", program.parent / "boards" / "start.o"]
    out = tmp_path / "bench.elf"
    include = ["-I", str(MUNACL / manifest["includeDir"]), "-I", str(MUNACL / "src")]
    run([*LINK, "-Os", *flags, *include, *map(str, sources), *map(str, objects), "-o", str(out)])
    assert m3.run(str(out)).code == 0


def test_pack_lists_link_the_benchmark(build: Build, profile: str, tmp_path: Path) -> None:
    pack = ElementTree.parse(MUNACL / "Warifu.munacl.pdsc")
    (component,) = pack.iterfind(f".//component[@Cvariant='{profile}']")
    files = [
        (one.get("category", ""), MUNACL / one.get("name", "")) for one in component.iter("file")
    ]
    # What Pre_Include_Global_h defines is in all files of the project.
    (tmp_path / "Pre_Include_Global.h").write_text(
        component.findtext("Pre_Include_Global_h", "") + "\n"
    )
    flags = ["-Os", "-std=c11", "-include", str(tmp_path / "Pre_Include_Global.h")]
    flags += [flag for kind, path in files if kind == "include" for flag in ("-I", str(path))]
    sources = [str(path) for kind, path in files if kind.startswith("source")]
    program = build(profile, "bench.elf")
    objects = [program.parent / "bench" / "bench.o", program.parent / "boards" / "start.o"]
    out = tmp_path / "bench.elf"
    run([*LINK, *flags, *sources, *map(str, objects), "-o", str(out)])
    done = m3.run(str(out))
    assert (done.code, b"failed" in done.output) == (0, False)


#: Zephyr's functions, as far as zephyr/CMakeLists.txt calls them.
ZEPHYR = """\
cmake_minimum_required(VERSION 3.20)
project(module C ASM)
set(CONFIG_MUNACL y)
function(zephyr_library_named name)
  add_library(${name} STATIC)
endfunction()
function(zephyr_library_sources)
  target_sources(munacl PRIVATE ${ARGN})
endfunction()
function(zephyr_library_include_directories)
  target_include_directories(munacl PRIVATE ${ARGN})
endfunction()
function(zephyr_include_directories)
  target_include_directories(munacl PUBLIC ${ARGN})
endfunction()
function(zephyr_library_compile_definitions)
  target_compile_definitions(munacl PRIVATE ${ARGN})
endfunction()
"""


@needs.program("cmake")
def test_zephyr_module_builds_the_profile_of_its_setting(
    build: Build, profile: str, tmp_path: Path
) -> None:
    setting = "set(CONFIG_MUNACL_SMALL y)\n" if profile == "small" else ""
    module = f"add_subdirectory({MUNACL / 'zephyr'} module)\n"
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR + setting + module)
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={MUNACL / 'cmake' / 'gcc.cmake'}"
    # Zephyr's own default is -Os.
    optimised = "-DCMAKE_BUILD_TYPE=MinSizeRel"
    run(["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), toolchain, optimised])
    run(["cmake", "--build", str(tmp_path / "build")])
    library = tmp_path / "build" / "module" / "libmunacl.a"
    objects = [build(profile, "bench/bench.o"), build(profile, "boards/start.o")]
    out = tmp_path / "bench.elf"
    run([*LINK, *map(str, objects), str(library), "-o", str(out)])
    done = m3.run(str(out))
    assert (done.code, b"failed" in done.output) == (0, False)
    members = run(["arm-none-eabi-ar", "t", str(library)])
    assert ("blocks_portable.c" in members) == (profile == "small")


def compiled_for_speed(folder: Path) -> set[str]:
    """The files whose last level of optimisation is -O2, of a build folder of CMake's."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    levels = {
        Path(one["file"]).name: [word for word in one["command"].split() if word[:2] == "-O"][-1]
        for one in commands
        if one["file"].endswith(".c")
    }
    assert set(levels.values()) <= {"-Os", "-O2"} and len(levels) > 20
    return {name for name, level in levels.items() if level == "-O2"}


@needs.program("cmake")
def test_cmake_and_zephyr_compile_for_speed_what_the_makefile_does(
    profile: str, tmp_path: Path
) -> None:
    make = ["make", "-n", "-C", str(MUNACL), f"PROFILE={profile}", f"BUILD={tmp_path / 'make'}"]
    lines = run(make).replace("\\\n", " ").splitlines()
    words = [line.split() for line in lines if " -O2 " in line]
    expected = {Path(one).name for line in words for one in line if one.endswith(".c")}
    assert len(expected) == (3 if profile == "fast" else 0)
    settings = [f"-DCMAKE_TOOLCHAIN_FILE={MUNACL / 'cmake' / 'gcc.cmake'}"]
    settings += ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DMUNACL_PROFILE={profile}"]
    run(["cmake", "-S", str(MUNACL), "-B", str(tmp_path / "cmake"), *settings])
    assert compiled_for_speed(tmp_path / "cmake") == expected
    small = "set(CONFIG_MUNACL_SMALL y)\n" if profile == "small" else ""
    module = f"add_subdirectory({MUNACL / 'zephyr'} module)\n"
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR + small + module)
    settings.append("-DCMAKE_C_FLAGS=-Os")
    run(["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "zephyr"), *settings])
    assert compiled_for_speed(tmp_path / "zephyr") == expected


@needs.program("cmake")
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs.program("clang"))])
def test_cmake_library_is_right_and_constant_time(
    build: Build, profile: str, compiler: str, tmp_path: Path
) -> None:
    toolchain = MUNACL / "cmake" / f"{compiler}.cmake"
    settings = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DMUNACL_PROFILE={profile}"]
    run(["cmake", "-S", str(MUNACL), "-B", str(tmp_path), *settings])
    run(["cmake", "--build", str(tmp_path)])
    library = tmp_path / "libmunacl.a"
    assert checks.instructions(listing(library)).problems == ()
    # The same, with what it declassifies made known; what compilers spill differs.
    known = f"-DTAINT -I{ROOT / 'crates' / 'm3' / 'include'}"
    known += f" -include {MUNACL / 'tests' / 'declassify.h'}"
    run(
        [
            "cmake",
            "-S",
            str(MUNACL),
            "-B",
            str(tmp_path / "taint"),
            *settings,
            f"-DCMAKE_C_FLAGS={known}",
        ]
    )
    run(["cmake", "--build", str(tmp_path / "taint")])
    for what, check in (("taint", checks.taint), ("residue", checks.residue)):
        objects = [build(profile, f"{what}/tests/secrets.o"), build(profile, "boards/start.o")]
        out = tmp_path / f"{what}.elf"
        declassifying = tmp_path / "taint" / "libmunacl.a"
        run([*LINK, *map(str, objects), str(declassifying), "-o", str(out)])
        assert check(out) == checks.Check("34 calls", ())
    # The benchmark opens what it seals and signs.
    objects = [build(profile, "bench/bench.o"), build(profile, "boards/start.o")]
    out = tmp_path / "bench.elf"
    run([*LINK, *map(str, objects), str(library), "-o", str(out)])
    done = m3.run(str(out))
    assert (done.code, b"failed" in done.output) == (0, False)


def test_board_maps_link_the_benchmark(build: Build, profile: str, tmp_path: Path) -> None:
    objects = [build(profile, "bench/bench.o"), build(profile, "boards/start.o")]
    library = build(profile, f"libmunacl-{profile}.a")
    for chip in ("lpc1768", "stm32f103"):
        out = tmp_path / f"{chip}.elf"
        link = [
            str(MUNACL / "boards" / f"{chip}.ld") if one.endswith("generic.ld") else one
            for one in LINK
        ]
        run([*link, *map(str, objects), str(library), "-o", str(out)])
        assert m3.run(str(out), m3.Options(chip=chip)).code == 0


def test_random_generator_by_images_of_memory(build: Build, profile: str) -> None:
    done = m3.run(str(build(profile, "random.elf")))
    # 43: the hook that is called without entropy, with the reason of the last image.
    assert (done.code, done.output) == (43, b"random: right\n")


@pytest.mark.parametrize("board_name", ["lpc1768", "stm32f103", "mps2-an385"])
def test_programs_of_boards_start_their_clocks_and_run(build: Build, board_name: str) -> None:
    # A clock that does not start is an endless loop, a register that is none a fault.
    program = build("fast", f"bench-{board_name.replace('-', '_')}.elf")
    done = m3.run(str(program), m3.Options(chip=board_name))
    assert done.code == 0
    assert done.output.splitlines()[-1].startswith(b"# end rows=29 ")


@needs.program("qemu-system-arm")
def test_console_without_a_debugger_is_the_uart(build: Build, tmp_path: Path) -> None:
    # QEMU without semihosting, as on a board: BKPT is a HardFault, which the console steps over.
    # It has no cycle counter, so that calibration reads the whole run and refuses it for that.
    program = build("fast", "bench-mps2_an385.elf")
    command = ["qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-monitor", "none"]
    machine = subprocess.Popen(
        [*command, "-serial", "pty", "-kernel", str(program)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert machine.stdout is not None
        said = machine.stdout.readline()
        port = Path(said.split("redirected to ")[1].split()[0])
        with pytest.raises(CalibrateError, match="no cycle counter"):
            board.measure(port, 115200, silence_s=60)
        # It waits for a character, and begins again.
        with pytest.raises(CalibrateError, match="no cycle counter"):
            board.measure(port, 115200, silence_s=60)
    finally:
        machine.kill()
        machine.wait()


def test_console_of_a_cmsis_device_compiles_with_its_header(tmp_path: Path) -> None:
    # What CMSIS-Core (core_cm3.h) and a device's header declare.
    (tmp_path / "device.h").write_text(
        "#include <stdint.h>\n"
        "#define ITM_RXBUFFER_EMPTY ((int32_t)0x5AA55AA5U)\n"
        "extern uint32_t SystemCoreClock;\n"
        "void SystemCoreClockUpdate(void);\n"
        "uint32_t ITM_SendChar(uint32_t ch);\n"
        "int32_t ITM_ReceiveChar(void);\n"
        "int32_t ITM_CheckChar(void);\n"
    )
    compiler = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-std=c11", "-Wall", "-Wextra"]
    for name in ("cmsis", "console", "start"):
        header = '-DMUNACL_DEVICE_HEADER="device.h"'
        source = str(MUNACL / "boards" / f"{name}.c")
        out = str(tmp_path / f"{name}.o")
        run([*compiler, "-Werror", header, "-I", str(tmp_path), "-c", source, "-o", out])
    symbols = run(["arm-none-eabi-nm", *map(str, tmp_path.glob("*.o"))])
    assert "HardFault_Handler" in symbols
    assert "munacl_reset" not in symbols
