// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles the programs of `test-programs/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of this crate's test programs.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("test-programs")
}

/// Compiles and links files of that folder with its start-up code; returns the ELF file.
pub fn compile(files: &[&str], options: &[&str]) -> Vec<u8> {
    let folder = folder();
    let mut arguments = vec!["-ffreestanding".to_owned(), "-nostdlib".to_owned()];
    arguments.extend(["-I".to_owned(), folder.join("taint").display().to_string()]);
    arguments.push(format!("-Wa,-I,{}", folder.join("taint").display()));
    arguments.extend(["-T", "mps2-an385.ld", "start.c"].map(str::to_owned));
    arguments.extend(files.iter().chain(options).copied().map(str::to_owned));
    arguments.extend(["-lc", "-lgcc"].map(str::to_owned));
    link(&arguments)
}

/// The same with newlib's start-up code and semihosting console.
#[allow(dead_code)] // not used by every test
pub fn compile_hosted(files: &[&str], options: &[&str]) -> Vec<u8> {
    let arguments = files.iter().chain(options).chain(&["--specs=rdimon.specs"]);
    link(&arguments.copied().map(str::to_owned).collect::<Vec<_>>())
}

/// One file that has its own vector table.
#[allow(dead_code)] // not used by every test
pub fn compile_alone(file: &str) -> Vec<u8> {
    link(&["-nostdlib", "-T", "mps2-an385.ld", file].map(str::to_owned))
}

fn link(arguments: &[String]) -> Vec<u8> {
    let output = tempfile::tempdir().expect("a folder for a program");
    let elf = output.path().join("program.elf");
    let done = Command::new("arm-none-eabi-gcc")
        .args(["-mcpu=cortex-m3", "-mthumb", "-g", "-Wall", "-Werror", "-I", "../include"])
        .args(arguments)
        .arg("-o")
        .arg(&elf)
        .current_dir(folder())
        .stdin(Stdio::null())
        .output()
        .expect("arm-none-eabi-gcc is installed: scripts/setup --with tests");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&elf).expect("the program was written")
}
