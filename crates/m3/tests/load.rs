// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading of ELF files, and stack limits.

use std::path::Path;
use std::process::Command;

use warifu_m3::machine::Limits;
use warifu_m3::session::{Session, Setup, SetupError};
use warifu_m3::stop::Stop;

/// Calls itself DEPTH times; each call has a frame of about 64 bytes.
const SOURCE: &str = "
int data[64] = {1};
int zeros[64];
__attribute__((noinline)) int deep(int left)
{
    volatile char frame[48];
    frame[0] = (char)left;
    return left ? deep(left - 1) + frame[0] : data[1] + zeros[1];
}
";
const BARE: &str = "
static void start(void)
{
    static const unsigned end[2] = {0x20026, 0};
    deep(DEPTH);
    register unsigned r0 __asm__(\"r0\") = 0x20;
    register const unsigned *r1 __asm__(\"r1\") = end;
    __asm__ volatile(\"bkpt 0xab\" :: \"r\"(r0), \"r\"(r1) : \"memory\");
}
extern char top[];
__attribute__((section(\".vectors\"), used))
static const void *const vectors[] = {top, (void *)start};
";

/// A program that stores to a variable.
const STORE: &str = "
int data[4] = {1};
static void start(void) { *(volatile int *)data = 2; }
extern char top[];
__attribute__((section(\".vectors\"), used))
static const void *const vectors[] = {top, (void *)start};
";

/// The test program, linked with a linker script.
fn linked(depth: u32, script: &str) -> Vec<u8> {
    linked_source(&format!("{SOURCE}{BARE}"), depth, script)
}

fn linked_source(source: &str, depth: u32, script: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let script_path = folder.path().join("script.ld");
    std::fs::write(&script_path, script).expect("the script is written");
    let flags = ["-ffreestanding", "-nostdlib", "-T"].map(Path::new);
    compile(folder.path(), source, depth, &[&flags[..], &[&script_path]].concat())
}

fn compile(folder: &Path, source: &str, depth: u32, options: &[&Path]) -> Vec<u8> {
    let (file, elf) = (folder.join("program.c"), folder.join("program.elf"));
    std::fs::write(&file, source).expect("the source is written");
    let done = Command::new("arm-none-eabi-gcc")
        .args(["-mcpu=cortex-m3", "-mthumb", "-O1", "-fno-optimize-sibling-calls"])
        .arg(format!("-DDEPTH={depth}"))
        .args(options)
        .arg(&file)
        .arg("-o")
        .arg(&elf)
        .output()
        .expect("arm-none-eabi-gcc is installed: scripts/setup --with tests");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&elf).expect("the program was written")
}

/// A linker script for lpc1768: data at an address, the stack from `top` downwards, and symbols.
fn script(data: &str, top: &str, symbols: &str) -> String {
    format!(
        "MEMORY {{
            code (rx) : ORIGIN = 0, LENGTH = 512K
            data (rw) : ORIGIN = {data}, LENGTH = 16K
         }}
         SECTIONS {{
            .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) }} > code
            .data : {{ *(.data*) }} > data AT > code
            .bss (NOLOAD) : {{ *(.bss*) _ebss = .; end = .; }} > data
            top = {top};
            {symbols}
         }}"
    )
}

fn session(file: &[u8], chip: &str) -> Result<Session, SetupError> {
    Session::new(file, &Setup { chip: chip.into(), ..Setup::default() })
}

fn run(file: &[u8], chip: &str) -> Stop {
    let mut session = session(file, chip).expect("it is loaded");
    session.machine.run(Limits { instructions: 2_000_000 })
}

/// The limit below which the stack overflowed.
fn limit(stop: &Stop) -> Option<u32> {
    match stop {
        Stop::StackOverflow { limit, .. } => Some(*limit),
        _ => None,
    }
}

#[test]
fn program_for_another_core_is_refused_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let build = |core: &str| {
        let (file, elf) = (folder.path().join("program.c"), folder.path().join("program.elf"));
        std::fs::write(&file, "void _start(void) {}").expect("the source is written");
        let done = Command::new("arm-none-eabi-gcc")
            .args([&format!("-mcpu={core}"), "-mthumb", "-mfloat-abi=soft", "-nostdlib"])
            .arg(&file)
            .arg("-o")
            .arg(&elf)
            .output()
            .expect("arm-none-eabi-gcc is installed: scripts/setup --with tests");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::read(&elf).expect("the program was written")
    };
    for (core, expected) in [
        ("cortex-m0plus", "M0+"),
        ("cortex-m4", "ARMv7E-M"),
        ("cortex-m23", "Cortex-M23"),
        ("cortex-m33", "Cortex-M33"),
    ] {
        let refused = session(&build(core), "mps2-an385").expect_err(core).to_string();
        assert!(refused.contains(expected) && refused.contains("-mcpu=cortex-m3"), "{refused}");
    }
    assert!(session(&build("cortex-m3"), "mps2-an385").is_ok());
}

#[test]
fn stack_limit_by_layout() {
    let ebss = 0x1000_0000 + 2 * 64 * 4;
    for (what, data, top, symbols, expected) in [
        ("data in the other memory", "0x2007c000", "0x10008000", "", 0x1000_0000),
        ("data in the other memory, below", "0x10000000", "0x20084000", "", 0x2007_c000),
        ("data above the stack", "0x10001000", "0x10001000", "", 0x1000_0000),
        ("data below the stack", "0x10000000", "0x10008000", "", ebss),
        ("a limit", "0x10000000", "0x10008000", "__StackLimit = 0x10004000;", 0x1000_4000),
        ("a limit elsewhere", "0x10000000", "0x10008000", "__StackLimit = 0x2007c000;", ebss),
    ] {
        let script = script(data, top, symbols);
        assert_eq!(run(&linked(10, &script), "lpc1768"), Stop::Exit { code: 0 }, "{what}");
        let stop = run(&linked(100_000, &script), "lpc1768");
        assert_eq!(limit(&stop), Some(expected), "{what}: {stop}");
    }
}

#[test]
fn newlib_stack_limits() {
    let main = format!("{SOURCE} int main(void) {{ return deep(DEPTH) & 0; }}");
    let of = |specs: &str, depth| {
        let folder = tempfile::tempdir().expect("a folder");
        compile(folder.path(), &main, depth, &[Path::new(specs)])
    };
    // The stack is that of SYS_HEAPINFO, at the end of a memory; the data is in another one.
    assert_eq!(run(&of("--specs=rdimon.specs", 10), "mps2-an385"), Stop::Exit { code: 0 });
    let stop = run(&of("--specs=rdimon.specs", 100_000), "mps2-an385");
    assert_eq!(limit(&stop), Some(0x2000_0000), "{stop}");
    // The stack is at 0x80000, and the program cannot exit: it runs up to the limit.
    let stop = run(&of("--specs=nosys.specs", 10), "mps2-an385");
    assert!(matches!(stop, Stop::InstructionLimit { .. }), "{stop}");
}

/// An ELF file whose program headers load the same bytes at several addresses.
fn overlaid(addresses: impl ExactSizeIterator<Item = u32>, bytes: u32) -> Vec<u8> {
    let count = addresses.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x28\0".to_vec();
    for word in [1, 0x101, 52, 0, 0x0500_0000] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend([52, 32, count as u16, 40, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    for address in addresses {
        for word in [1, 52 + 32 * count, address, address, bytes, bytes, 5, 4] {
            file.extend(u32::to_le_bytes(word));
        }
    }
    file.resize(file.len() + bytes as usize, 1);
    file
}

#[test]
fn overlapping_segments_are_rejected() {
    let mib = 1 << 20;
    let error = |addresses: Vec<u32>| {
        session(&overlaid(addresses.into_iter(), mib), "mps2-an385")
            .expect_err("too much")
            .to_string()
    };
    assert_eq!(
        error(vec![0; 6000]),
        "segments at 0x00000000 and 0x00000000 of this ELF file overlap: \
         give each section its own load address (LMA)"
    );
    let last = error(vec![0x10_0000, 0x2000_0000, 0xf_ffff]);
    assert!(last.starts_with("segments at 0x000fffff and 0x00100000 of"), "{last}");
    // All 4 GiB, without overlap: the memory at 0 has a mirror at 0x00400000, nothing is beyond.
    let all = error((0..4096).map(|index| index << 20).collect());
    assert!(all.starts_with("a segment of 1048576 bytes at 0x00800000 lies outside"), "{all}");
}

#[test]
fn store_to_variable_in_flash_is_explained() {
    let file = linked_source(STORE, 0, &script("0x00060000", "0x10008000", ""));
    let mut session = session(&file, "lpc1768").expect("it is loaded");
    let stop = session.machine.run(Limits { instructions: 1000 });
    let said = session.describe(&stop);
    let hint = "; flash is read-only: link variables to RAM, as `warifu m3 init` does; r0=";
    assert!(said.contains(hint), "{said}");
}

#[test]
fn segment_larger_in_file_than_in_memory_is_rejected() {
    let mut file = overlaid([0].into_iter(), 0x100);
    // The only program header follows the ELF header; p_memsz is its sixth word.
    let size = 52 + 20;
    assert_eq!(file[size..size + 4], 0x100u32.to_le_bytes());
    file[size..size + 4].copy_from_slice(&0xffu32.to_le_bytes());
    let said = session(&file, "mps2-an385").map(drop).expect_err("too large").to_string();
    assert_eq!(
        said,
        "not a valid 32-bit ELF file: a segment is larger in the file than in memory; link the \
         program anew with arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb"
    );
}

#[test]
fn adjacent_segments_are_loaded() {
    let file = overlaid([0, 0x100, 0x2000_0000].into_iter(), 0x100);
    let session = session(&file, "mps2-an385").expect("it is loaded");
    for at in [0, 0xff, 0x100, 0x1ff, 0x2000_00ff] {
        assert_eq!(session.machine.core.memory.byte(at), Some(1), "{at:#x}");
    }
    assert_eq!(session.machine.core.memory.byte(0x200), Some(0));
    assert_eq!(session.program.segments().count(), 3);
}

/// The chip starts from a vector table if there is one, even if the ELF entry point is valid.
#[test]
fn invalid_vector_table_is_rejected() {
    let good = linked(1, &script("0x10000000", "0x10008000", ""));
    assert!(session(&good, "lpc1768").is_ok());
    let program = warifu_m3::program::Program::parse(&good).expect("a program");
    let (at, code) = program.segments().next().expect("its code");
    assert_eq!(at, 0);
    let table = good.windows(8).position(|eight| *eight == code[..8]).expect("the table");
    let words = |stack: u32, reset: u32| {
        let mut bad = good.clone();
        bad[table..table + 4].copy_from_slice(&stack.to_le_bytes());
        bad[table + 4..table + 8].copy_from_slice(&reset.to_le_bytes());
        // e_entry (System V ABI, chapter 4).
        bad[24..28].copy_from_slice(&code[4..8]);
        session(&bad, "lpc1768").map(drop).expect_err("it cannot start").to_string()
    };
    let reset = u32::from_le_bytes(code[4..8].try_into().expect("four bytes"));
    let said = words(0x1000_8000, reset & !1);
    assert!(said.contains("without the Thumb bit: the chip would lock up"), "{said}");
    let said = words(0x1000_8000, 0x9000_0001);
    assert!(said.contains("0x90000001 as its reset vector, where there is no memory"), "{said}");
    for stack in [0, 0x2000_8000] {
        let said = words(stack, reset);
        assert!(said.contains("as initial SP, outside the memories of lpc1768"), "{said}");
    }
}

/// Zero-initialised data, without bytes in the file, must fit too.
#[test]
fn zero_initialised_data_beyond_memory_is_rejected() {
    let good = linked(1, &script("0x10000000", "0x10008000", ""));
    let word = |at: usize| u32::from_le_bytes(good[at..at + 4].try_into().expect("four bytes"));
    let headers = word(28) as usize;
    // Program headers of 32 bytes; p_vaddr is the third word, p_memsz the sixth (System V ABI,
    // chapter 5).
    let data = (headers..).step_by(32).take(4).find(|at| word(at + 8) == 0x1000_0000);
    let size = data.expect("the data's header") + 20;
    for (bytes, fits) in [(0x8000u32, true), (0x8001, false), (u32::MAX, false)] {
        let mut file = good.clone();
        file[size..size + 4].copy_from_slice(&bytes.to_le_bytes());
        match session(&file, "lpc1768") {
            Ok(_) => assert!(fits, "{bytes}"),
            Err(error) => {
                let said = error.to_string();
                assert!(!fits && said.contains("0x10000000") && said.contains("sram"), "{said}");
            }
        }
    }
}
