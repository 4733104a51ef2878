# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A folder to start from: linker script, start-up code, an example and a Makefile for a chip."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warifu import _core
from warifu.files import replace_text
from warifu.m3.chips import DEFAULT_CHIP, Chip, Memory, chip, text_of
from warifu.printable import printable

STACK_BYTES = 4096
"""Of the stack, if the RAM has four times as many."""
_MIN_RAM = 1024


@dataclass(frozen=True)
class _BootRom:
    """What a chip's boot ROM does to RAM: before the program starts, and in calls of it."""

    writes_below: int
    """It writes to RAM below this address before the program starts."""
    top_bytes: int
    """What its functions use at the end of RAM."""
    source: str


_BOOT_ROMS = {"lpc1768": _BootRom(0x10000200, 32, "UM10360 section 32.3.2.7")}


def files(name: str = DEFAULT_CHIP) -> dict[str, str]:
    """The files of the folder by their names. Raises as `warifu.m3.chip` does, and WarifuError for
    a chip without room for a program or whose name no file should have."""
    known, text = chip(name), text_of(name)
    if not known.name[0].isalnum():
        # `-x.ld` is an option to other programs, `.x.ld` hidden.
        raise _core.WarifuError(
            f"{name}: name is {known.name!r}: expected a letter or digit first, since the linker "
            "script is named by it: rename the chip"
        )
    found = {
        f"{known.name}.ld": linker_script(known),
        "start.c": _START,
        "main.c": _MAIN,
        "Makefile": _MAKEFILE.format(
            script=f"{known.name}.ld", chip=known.name if text is None else "chip.toml"
        ),
    }
    if text is not None:
        found["chip.toml"] = text
    return found


def init(folder: Path, name: str = DEFAULT_CHIP) -> list[Path]:
    """Writes the files into a folder; returns their paths. Raises as `files` does, WarifuError if
    one of them is there already, and OSError."""
    written = {folder / file: text for file, text in files(name).items()}
    for path in written:
        if path.exists() or path.is_symlink():
            raise _core.WarifuError(f"{path}: is there already: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in written.items():
        replace_text(path, text)
    return list(written)


def linker_script(known: Chip) -> str:
    """A linker script for a chip: code and constants where the vector table is, variables and the
    stack in the first other memory that is writable."""
    code = next((one for one in known.memories if _holds(one, known.vector_table)), None)
    if code is None:
        raise _core.WarifuError(
            f"{known.name}: vector-table is {known.vector_table:#x}, in an alias: a linker script "
            "needs it in a memory"
        )
    others = [one for one in known.memories if one.writable and one != code]
    data = others[0] if others else code
    if data.bytes < _MIN_RAM:
        raise _core.WarifuError(
            f"{known.name}: memory {data.name} has {data.bytes} bytes: a program needs {_MIN_RAM} "
            "of RAM at least"
        )
    stack = min(STACK_BYTES, data.bytes // 4)
    rom = _BOOT_ROMS.get(known.name, _BootRom(0, 0, ""))
    memories = "\n".join(_memory(one, known.vector_table) for one in known.memories)
    return _SCRIPT.format(
        name=known.name, source=printable(known.source).replace("*/", "* /"), memories=memories,
        code=_word(code), data=_word(data), stack=stack,
        noinit=f"MAX(ALIGN(8), {rom.writes_below:#x}) (NOLOAD) :" if rom.source
        else "(NOLOAD) : ALIGN(8)",
        why=f"\n       Past what the boot ROM writes before the program starts ({rom.source})."
        if rom.source else "",
        top=f" - {rom.top_bytes}; /* the boot ROM's functions */" if rom.source else ";",
        load="" if data == code else f" AT > {_word(code)}",
    )  # fmt: skip


def _holds(memory: Memory, address: int) -> bool:
    return memory.address <= address < memory.address + memory.bytes


def _memory(memory: Memory, table: int) -> str:
    # Code begins with the vector table.
    start = table if _holds(memory, table) else memory.address
    length = memory.address + memory.bytes - start
    rights = "rwx" if memory.writable else "rx"
    return f"    {_word(memory)} ({rights}) : ORIGIN = {start:#010x}, LENGTH = {length:#x}"


def _word(memory: Memory) -> str:
    """A memory's name as linker scripts take it."""
    return "".join(letter if letter.isalnum() else "_" for letter in memory.name).upper()


_SCRIPT = """\
/* {name}: {source} */
ENTRY(Reset_Handler)

MEMORY
{{
{memories}
}}

SECTIONS
{{
    .isr_vector :
    {{
        KEEP(*(.isr_vector))
    }} > {code}

    .text :
    {{
        *(.text .text.*)
        *(.rodata .rodata.*)
        . = ALIGN(4);
        __init_array_start = .;
        KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*)))
        KEEP(*(.init_array))
        __init_array_end = .;
    }} > {code}

    .ARM.exidx :
    {{
        *(.ARM.exidx .ARM.exidx.*)
        . = ALIGN(4);
    }} > {code}

    .data : ALIGN(4)
    {{
        __data_start__ = .;
        *(.data .data.*)
        . = ALIGN(4);
        __data_end__ = .;
    }} > {data}{load}
    __data_load__ = LOADADDR(.data);

    .bss (NOLOAD) : ALIGN(4)
    {{
        __bss_start__ = .;
        *(.bss .bss.* COMMON)
        . = ALIGN(8);
        __bss_end__ = .;
    }} > {data}

    /* Start-up leaves variables with section(".noinit") as they are.{why} */
    .noinit {noinit}
    {{
        *(.noinit .noinit.*)
        . = ALIGN(8);
        __noinit_end__ = .;
    }} > {data}

    /* The heap grows from here, the stack from the end of the memory. */
    end = __noinit_end__;
    __StackTop = ORIGIN({data}) + LENGTH({data}){top}
    __StackLimit = __StackTop - {stack};
    ASSERT(end <= __StackLimit, "variables and the stack do not fit into {data}")
}}
"""

_START = """\
/* Start-up: the vector table, initialised variables, and the console by semihosting. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint32_t __data_load__, __data_start__, __data_end__, __bss_start__, __bss_end__;
extern uint32_t __StackTop;
extern void (*__init_array_start[])(void), (*__init_array_end[])(void);

extern int main(void);
/* newlib's console (--specs=rdimon.specs). A board without a debugger stops at its first BKPT:
 * leave this call and the specs out there, and write to the board's own UART. */
extern void initialise_monitor_handles(void);

void Reset_Handler(void)
{
    if (&__data_load__ != &__data_start__)
        memcpy(&__data_start__, &__data_load__,
               (size_t)((char *)&__data_end__ - (char *)&__data_start__));
    memset(&__bss_start__, 0, (size_t)((char *)&__bss_end__ - (char *)&__bss_start__));
    initialise_monitor_handles();
    for (void (**one)(void) = __init_array_start; one != __init_array_end; one++)
        (*one)();
    exit(main());
}

/* newlib calls these at exit. */
void _init(void)
{
}

void _fini(void)
{
}

static void stop(void)
{
    for (;;)
        ;
}

/* SysTick and the external interrupts: put your handlers here. */
__attribute__((section(".isr_vector"), used)) static const void *const vectors[] = {
    &__StackTop, Reset_Handler,
    stop, stop, stop, stop, stop, /* NMI, HardFault, MemManage, BusFault, UsageFault */
    0, 0, 0, 0,
    stop, stop, 0, stop, stop, /* SVCall, DebugMonitor, PendSV, SysTick */
};
"""

_MAIN = """\
#include <stdio.h>

static int answer = 42; /* is copied to RAM by start.c */

int main(void)
{
    printf("hello, %d\\n", answer);
    return 0;
}
"""

_MAKEFILE = """\
CC = arm-none-eabi-gcc
CFLAGS = -mcpu=cortex-m3 -mthumb -O2 -g -Wall -ffunction-sections -fdata-sections
LDFLAGS = -T {script} -nostartfiles --specs=rdimon.specs -Wl,--gc-sections

program.elf: main.c start.c {script}
\t$(CC) $(CFLAGS) $(LDFLAGS) main.c start.c -o $@

run: program.elf
\twarifu m3 run program.elf --chip {chip}

clean:
\trm -f program.elf

.PHONY: run clean
"""
