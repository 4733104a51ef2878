// SPDX-License-Identifier: Apache-2.0 OR MIT
//! QEMU as the reference: its registers before each instruction.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// R0 to R15 and xPSR before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub r: [u32; 16],
    pub xpsr: u32,
}

/// QEMU as the simulated chip's board, without display, monitor or serial line.
pub fn board() -> Command {
    let mut qemu = Command::new("qemu-system-arm");
    qemu.args(["-M", "mps2-an385", "-cpu", "cortex-m3", "-display", "none"]);
    qemu.args(["-monitor", "none", "-serial", "none"]).stdin(Stdio::null());
    qemu
}

pub struct Oracle {
    qemu: Child,
    log: BufReader<File>,
    line: String,
}

impl Oracle {
    /// Starts a program whose log goes through a named pipe in `directory`.
    pub fn start(elf: &Path, directory: &Path) -> Self {
        let log = directory.join("log");
        let _ = std::fs::remove_file(&log);
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &log,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .expect("a pipe");
        let qemu = board()
            .args([
                "-semihosting-config",
                "enable=on,target=native",
                "-singlestep",
                "-d",
                "cpu,nochain",
                "-D",
            ])
            .arg(&log)
            .arg("-kernel")
            .arg(elf)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("qemu-system-arm is installed: scripts/setup --with tests");
        let log = File::open(&log).expect("QEMU's log is read");
        Oracle { qemu, log: BufReader::with_capacity(1 << 20, log), line: String::new() }
    }

    fn read_line(&mut self) -> Option<&str> {
        self.line.clear();
        match self.log.read_line(&mut self.line) {
            Ok(bytes) if bytes > 0 => Some(&self.line),
            _ => None,
        }
    }
}

impl Iterator for Oracle {
    type Item = State;

    /// The next state, in QEMU's layout: four lines of four registers, then XPSR.
    fn next(&mut self) -> Option<State> {
        let mut r = [0; 16];
        while !self.read_line()?.starts_with("R00=") {}
        for first in [0, 4, 8, 12] {
            if first != 0 {
                self.read_line()?;
            }
            for index in 0..4 {
                let start = index * 13 + 4;
                r[first + index] =
                    u32::from_str_radix(self.line.get(start..start + 8)?, 16).ok()?;
            }
        }
        let status = self.read_line()?;
        let xpsr = u32::from_str_radix(status.get(5..13)?, 16).ok()?;
        Some(State { r, xpsr })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
