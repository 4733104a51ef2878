// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program asks of its host by BKPT 0xAB (Arm, Semihosting for AArch32 and AArch64).
//!
//! There is a console and no file but that of the features: the simulator does no input or output. What the program writes is kept for whoever runs it.

use crate::core::Core;
use crate::isa::Width;

const CONSOLE_IN: u32 = 1;
const CONSOLE_OUT: u32 = 2;
const CONSOLE_ERROR: u32 = 3;
const FEATURES: u32 = 4;
/// What `:semihosting-features` holds: its mark, then SH_EXT_EXIT_EXTENDED and SH_EXT_STDOUT_STDERR. A C library that does
/// not find the first keeps its exit code to itself.
const FEATURES_CONTENT: &[u8; 5] = b"SHFB\x03";
const FAILED: u32 = u32::MAX;
/// More than any program prints at once; a wild length ends there.
const LONGEST: u32 = 1 << 20;

/// Where console output goes as it comes.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// The host's side of a program.
#[derive(Default)]
pub struct Semihosting {
    /// What the program wrote to its console, unless [`Semihosting::sink`] takes it.
    pub output: Vec<u8>,
    /// Takes console output as it comes.
    pub sink: Option<Sink>,
    /// What the program will read from its console.
    pub input: std::collections::VecDeque<u8>,
    /// SYS_GET_CMDLINE's answer.
    pub command_line: String,
    /// SYS_HEAPINFO's answer: heap base, heap limit, stack base, stack limit.
    pub heap_info: [u32; 4],
    /// How far the features were read.
    features_at: usize,
}

impl std::fmt::Debug for Semihosting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semihosting").field("output", &self.output.len()).finish_non_exhaustive()
    }
}

/// What comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// R0 for the program.
    Value(u32),
    /// The program ends.
    Exit(u32),
    /// No such call.
    Unknown(u32),
}

impl Semihosting {
    /// Does the call that R0 and R1 hold.
    pub fn call(&mut self, core: &mut Core) -> Answer {
        let (number, parameter) = (core.registers.r[0], core.registers.r[1]);
        let word = |index: u32| core.memory.word(parameter.wrapping_add(4 * index)).unwrap_or(0);
        match number {
            0x01 => {
                self.features_at = 0;
                Answer::Value(open(core, word(0), word(1), word(2)))
            }
            0x02 => Answer::Value(0),
            0x03 => {
                if let Some(byte) = core.peek(parameter, Width::Byte) {
                    self.print(&[byte as u8]);
                }
                Answer::Value(0)
            }
            0x04 => {
                let text = text(core, parameter);
                self.print(&text);
                Answer::Value(0)
            }
            0x05 => {
                let (handle, from, length) = (word(0), word(1), word(2));
                if handle != CONSOLE_OUT && handle != CONSOLE_ERROR {
                    return Answer::Value(length);
                }
                match core.memory.slice(from, length.min(LONGEST) as usize) {
                    Some(bytes) => {
                        let bytes = bytes.to_vec();
                        self.print(&bytes);
                        Answer::Value(0)
                    }
                    None => Answer::Value(length),
                }
            }
            0x06 => {
                let (handle, to, length) = (word(0), word(1), word(2));
                Answer::Value(self.read(core, handle, to, length))
            }
            0x07 => Answer::Value(self.input.pop_front().map_or(FAILED, u32::from)),
            0x08 => Answer::Value(u32::from((word(0) as i32) < 0)),
            0x09 => Answer::Value(u32::from((CONSOLE_IN..=CONSOLE_ERROR).contains(&word(0)))),
            0x0a if word(0) == FEATURES => {
                self.features_at = word(1) as usize;
                Answer::Value(0)
            }
            0x0c if word(0) == FEATURES => Answer::Value(FEATURES_CONTENT.len() as u32),
            0x0a | 0x0c | 0x0d | 0x0e | 0x0f | 0x12 => Answer::Value(FAILED),
            // Centiseconds and seconds: time stands still, so that a run is the same each time.
            0x10 | 0x11 | 0x13 => Answer::Value(0),
            0x15 => Answer::Value(self.command_line(core, parameter)),
            0x16 => {
                let block = word(0);
                for (index, value) in self.heap_info.into_iter().enumerate() {
                    core.memory.set_word(block.wrapping_add(4 * index as u32), value);
                }
                Answer::Value(0)
            }
            // ADP_Stopped_ApplicationExit is the good end; another reason is a failure.
            0x18 => Answer::Exit(u32::from(parameter != 0x2_0026)),
            0x20 => Answer::Exit(if word(0) == 0x2_0026 { word(1) } else { 1 }),
            0x30 | 0x31 => Answer::Value(FAILED),
            other => Answer::Unknown(other),
        }
    }

    /// SYS_READ: how many bytes are left of those that were asked for.
    fn read(&mut self, core: &mut Core, handle: u32, to: u32, length: u32) -> u32 {
        for index in 0..length {
            let byte = if handle == FEATURES {
                let byte = FEATURES_CONTENT.get(self.features_at).copied();
                self.features_at = self.features_at.saturating_add(1);
                byte
            } else {
                self.input.pop_front()
            };
            let Some(byte) = byte else { return length - index };
            core.memory.set_byte(to.wrapping_add(index), byte);
        }
        0
    }

    fn print(&mut self, bytes: &[u8]) {
        match &mut self.sink {
            Some(sink) => sink(bytes),
            None => self.output.extend_from_slice(bytes),
        }
    }

    fn command_line(&self, core: &mut Core, parameter: u32) -> u32 {
        let place = core.memory.word(parameter).unwrap_or(0);
        let room = core.memory.word(parameter.wrapping_add(4)).unwrap_or(0) as usize;
        let line = self.command_line.as_bytes();
        if line.len() >= room {
            return FAILED;
        }
        for (index, byte) in line.iter().chain(&[0]).enumerate() {
            core.memory.set_byte(place.wrapping_add(index as u32), *byte);
        }
        core.memory.set_word(parameter.wrapping_add(4), line.len() as u32);
        0
    }
}

/// `:tt` is the console: opened for reading, for writing, and for appending, which is its error output.
fn open(core: &Core, name: u32, mode: u32, length: u32) -> u32 {
    match (core.memory.slice(name, length.min(LONGEST) as usize), mode) {
        (Some(b":tt"), 0..=3) => CONSOLE_IN,
        (Some(b":tt"), 4..=7) => CONSOLE_OUT,
        (Some(b":tt"), _) => CONSOLE_ERROR,
        (Some(b":semihosting-features"), 0..=3) => FEATURES,
        _ => FAILED,
    }
}

/// Bytes up to a zero.
pub fn text(core: &Core, at: u32) -> Vec<u8> {
    (0..LONGEST)
        .map_while(|index| core.memory.byte(at.wrapping_add(index)))
        .take_while(|byte| *byte != 0)
        .collect()
}
