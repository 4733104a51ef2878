// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of `firmware/`, compiled when a test wants them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of this crate's firmware.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware")
}

/// Compiles and links files of the firmware folder with its start-up code; the ELF file's bytes.
pub fn compile(files: &[&str], options: &[&str]) -> Vec<u8> {
    let output = tempfile::tempdir().expect("a folder for a program");
    let elf = output.path().join("program.elf");
    let folder = folder();
    let done = Command::new("arm-none-eabi-gcc")
        .args([
            "-mcpu=cortex-m3",
            "-mthumb",
            "-g",
            "-Wall",
            "-Werror",
            "-ffreestanding",
            "-nostdlib",
            "-I",
        ])
        .arg(folder.join("../include"))
        .arg("-I")
        .arg(folder.join("taint"))
        .arg(format!("-Wa,-I,{}", folder.join("taint").display()))
        .arg("-T")
        .arg(folder.join("mps2-an385.ld"))
        .arg(folder.join("start.c"))
        .args(files.iter().map(|file| folder.join(file)))
        .args(options)
        .args(["-lc", "-lgcc", "-o"])
        .arg(&elf)
        .stdin(Stdio::null())
        .output()
        .expect("arm-none-eabi-gcc is installed: scripts/setup --with tests");
    assert!(done.status.success(), "{files:?}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&elf).expect("the program was written")
}
