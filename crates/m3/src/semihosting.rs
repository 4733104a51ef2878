// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Semihosting by BKPT 0xAB (Arm, Semihosting for AArch32 and AArch64).
//!
//! There is a console, and no file except `:semihosting-features`. Nothing is printed here: output
//! is stored, or passed to a sink.

use crate::core::Core;

const CONSOLE_IN: u32 = 1;
const CONSOLE_OUT: u32 = 2;
const CONSOLE_ERROR: u32 = 3;
const FEATURES: u32 = 4;
/// The content of `:semihosting-features`: magic, then SH_EXT_EXIT_EXTENDED and
/// SH_EXT_STDOUT_STDERR. Without the former a C library does not pass on its exit code.
const FEATURES_CONTENT: &[u8; 5] = b"SHFB\x03";
const FAILED: u32 = u32::MAX;
/// The longest write that one call may make; bounds wild lengths.
pub const MAX_WRITE: u32 = 1 << 20;
/// Bytes of output stored if there is no sink: a program that prints in an endless loop must not
/// exhaust the host's memory.
pub const MAX_OUTPUT: usize = 16 << 20;

/// Receives console output as it is written.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// The host's side of a program.
#[derive(Default)]
pub struct Semihosting {
    /// Console output if there is no [`Semihosting::sink`]: the first [`MAX_OUTPUT`] bytes.
    pub output: Vec<u8>,
    /// Bytes of output beyond [`MAX_OUTPUT`], which were dropped.
    pub lost_output: u64,
    /// Receives console output.
    pub sink: Option<Sink>,
    /// Console input.
    pub input: std::collections::VecDeque<u8>,
    /// SYS_GET_CMDLINE's answer.
    pub command_line: String,
    /// SYS_HEAPINFO's answer: heap base, heap limit, stack base, stack limit.
    pub heap_info: [u32; 4],
    /// The limit of the stack in that answer; 0 if unknown.
    pub stack_limit: u32,
    /// Address and length of each write to memory by the last call.
    pub written: Vec<(u32, u32)>,
    /// Bytes that the calls so far have read, printed or looked through.
    pub handled: u64,
    /// The read position in the features file.
    features_at: usize,
}

impl std::fmt::Debug for Semihosting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semihosting").field("output", &self.output.len()).finish_non_exhaustive()
    }
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Returns a value in R0.
    Value(u32),
    /// The program exits.
    Exit(u32),
    /// Unsupported call.
    Unknown(u32),
    /// The call reads from an address where there is no memory.
    Unmapped {
        /// The call's number.
        number: u32,
        /// The first such address.
        address: u32,
    },
}

/// The first address that a call reads and where there is no memory.
struct Unmapped(u32);

impl Semihosting {
    /// Performs the call in R0 with the parameter in R1.
    pub fn call(&mut self, core: &mut Core) -> Answer {
        self.written.clear();
        let (number, parameter) = (core.registers.r[0], core.registers.r[1]);
        let done = match number {
            0x01..=0x07 => self.console(core, number, parameter).map(Answer::Value),
            _ => self.other(core, number, parameter),
        };
        done.unwrap_or_else(|Unmapped(address)| Answer::Unmapped { number, address })
    }

    /// Calls on files, which are the console.
    fn console(&mut self, core: &mut Core, number: u32, parameter: u32) -> Result<u32, Unmapped> {
        let word = |index: u32| parameter_word(core, parameter, index);
        Ok(match number {
            0x01 => {
                self.features_at = 0;
                open(core, word(0)?, word(1)?, word(2)?)?
            }
            0x03 => {
                let [byte] = text(core, parameter, 1)?.try_into().unwrap_or_default();
                self.print(&[byte]);
                0
            }
            0x04 => {
                let written = core.memory.c_string(parameter, MAX_WRITE).to_vec();
                // Up to the end of its memory there may be no zero byte.
                let end = parameter.wrapping_add(written.len() as u32);
                if written.len() < MAX_WRITE as usize {
                    text(core, end, 1)?;
                }
                self.handled += written.len() as u64;
                self.print(&written);
                0
            }
            0x05 => {
                let (handle, from, length) = (word(0)?, word(1)?, word(2)?);
                if !console_writes(handle) {
                    return Ok(length);
                }
                let written = text(core, from, length.min(MAX_WRITE))?.to_vec();
                self.handled += written.len() as u64;
                self.print(&written);
                length - written.len() as u32
            }
            0x06 => {
                let (handle, to, length) = (word(0)?, word(1)?, word(2)?);
                self.read(core, handle, to, length)
            }
            0x07 => self.input.pop_front().map_or(FAILED, u32::from),
            _ => 0,
        })
    }

    fn other(&mut self, core: &mut Core, number: u32, parameter: u32) -> Result<Answer, Unmapped> {
        let word = |index: u32| parameter_word(core, parameter, index);
        Ok(Answer::Value(match number {
            0x08 => u32::from((word(0)? as i32) < 0),
            0x09 => u32::from((CONSOLE_IN..=CONSOLE_ERROR).contains(&word(0)?)),
            0x0a if word(0)? == FEATURES => {
                self.features_at = word(1)? as usize;
                0
            }
            0x0c if word(0)? == FEATURES => FEATURES_CONTENT.len() as u32,
            0x0a | 0x0c | 0x0d | 0x0e | 0x0f | 0x12 => FAILED,
            // SYS_CLOCK, SYS_TIME, SYS_ERRNO: always zero, so that runs are reproducible.
            0x10 | 0x11 | 0x13 => 0,
            0x15 => self.command_line(core, parameter)?,
            0x16 => {
                let block = word(0)?;
                self.give_stack(core, block);
                0
            }
            // ADP_Stopped_ApplicationExit means success, any other reason a failure.
            0x18 => return Ok(Answer::Exit(u32::from(parameter != 0x2_0026))),
            0x20 => {
                let code = if word(0)? == 0x2_0026 { word(1)? } else { 1 };
                return Ok(Answer::Exit(code));
            }
            0x30 | 0x31 => FAILED,
            other => return Ok(Answer::Unknown(other)),
        }))
    }

    /// SYS_READ: the number of requested bytes that were not read.
    fn read(&mut self, core: &mut Core, handle: u32, to: u32, length: u32) -> u32 {
        let most = length as usize;
        // One by one: of a long input no more is touched than there is memory for.
        let read = match handle {
            FEATURES => store(core, to, FEATURES_CONTENT.iter().skip(self.features_at).take(most)),
            _ => store(core, to, self.input.iter().take(most)),
        };
        match handle {
            FEATURES => self.features_at += read,
            _ => drop(self.input.drain(..read)),
        }
        self.handled += read as u64;
        self.written.push((to, read as u32));
        length - read as u32
    }

    /// Writes to memory up to the first unwritable address.
    fn put(&mut self, core: &mut Core, to: u32, bytes: &[u8]) {
        let done = store(core, to, bytes.iter());
        self.written.push((to, done as u32));
    }

    /// Prints to the console.
    pub fn print(&mut self, bytes: &[u8]) {
        if let Some(sink) = &mut self.sink {
            return sink(bytes);
        }
        let room = MAX_OUTPUT.saturating_sub(self.output.len());
        let (kept, lost) = bytes.split_at(room.min(bytes.len()));
        self.output.extend_from_slice(kept);
        self.lost_output += lost.len() as u64;
    }

    /// SYS_GET_CMDLINE.
    fn command_line(&mut self, core: &mut Core, parameter: u32) -> Result<u32, Unmapped> {
        let place = parameter_word(core, parameter, 0)?;
        let room = parameter_word(core, parameter, 1)? as usize;
        let line = self.command_line.as_bytes();
        if line.len() >= room {
            return Ok(FAILED);
        }
        let line = [line, &[0]].concat();
        self.put(core, place, &line);
        self.put(core, parameter.wrapping_add(4), &(line.len() as u32 - 1).to_le_bytes());
        Ok(0)
    }

    /// SYS_HEAPINFO: the program may now use the stack in the answer, so its limit applies too.
    fn give_stack(&mut self, core: &mut Core, block: u32) {
        self.put(core, block, &self.heap_info.map(u32::to_le_bytes).concat());
        // A program may also keep the stack that it had.
        core.stack_limit = match core.stack_limit {
            0 => self.stack_limit,
            limit => limit.min(self.stack_limit),
        };
    }
}

/// Writes to memory up to the first unwritable address; the number of bytes written.
fn store<'a>(core: &mut Core, to: u32, bytes: impl Iterator<Item = &'a u8>) -> usize {
    let places = (0..).map(|index| to.wrapping_add(index));
    places.zip(bytes).take_while(|(at, byte)| core.memory.set_byte(*at, **byte)).count()
}

/// Whether what is written to a handle is console output.
pub fn console_writes(handle: u32) -> bool {
    handle == CONSOLE_OUT || handle == CONSOLE_ERROR
}

/// SYS_OPEN. `:tt` is the console: standard input, output or error by mode (read, write, append).
fn open(core: &Core, name: u32, mode: u32, length: u32) -> Result<u32, Unmapped> {
    Ok(match (text(core, name, length.min(MAX_WRITE))?, mode) {
        (b":tt", 0..=3) => CONSOLE_IN,
        (b":tt", 4..=7) => CONSOLE_OUT,
        (b":tt", _) => CONSOLE_ERROR,
        (b":semihosting-features", 0..=3) => FEATURES,
        _ => FAILED,
    })
}

/// A word of the block of parameters.
fn parameter_word(core: &Core, block: u32, index: u32) -> Result<u32, Unmapped> {
    let at = block.wrapping_add(4 * index);
    core.memory.word(at).ok_or(Unmapped(at))
}

/// Bytes that a program passes; they lie in one memory.
fn text(core: &Core, at: u32, bytes: u32) -> Result<&[u8], Unmapped> {
    core.memory
        .slice(at, bytes as usize)
        .or(if bytes == 0 { Some(&[]) } else { None })
        .ok_or_else(|| Unmapped(core.memory.span(at).map_or(at, |span| span.last.wrapping_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::timing::Rules;

    const BLOCK: u32 = 0x2000_0000;
    const BUFFER: u32 = 0x2000_0100;
    const END: u32 = 0x2080_0000;

    fn machine() -> Machine {
        let chip = "mps2-an385".parse().expect("a known chip");
        Machine::new(&chip, Rules::cortex_m3().expect("rules")).expect("a memory map")
    }

    fn call(machine: &mut Machine, number: u32, words: &[u32]) -> Answer {
        for (at, word) in (BLOCK..).step_by(4).zip(words) {
            assert!(machine.core.memory.set_word(at, *word));
        }
        machine.core.registers.r[..2].copy_from_slice(&[number, BLOCK]);
        machine.semihosting.call(&mut machine.core)
    }

    #[test]
    fn output_beyond_limit_is_dropped_and_counted() {
        let mut machine = machine();
        for _ in 0..MAX_OUTPUT / MAX_WRITE as usize {
            assert_eq!(
                call(&mut machine, 0x05, &[CONSOLE_OUT, BLOCK, MAX_WRITE]),
                Answer::Value(0)
            );
        }
        assert_eq!(
            (machine.semihosting.output.len(), machine.semihosting.lost_output),
            (MAX_OUTPUT, 0)
        );
        assert_eq!(call(&mut machine, 0x05, &[CONSOLE_ERROR, BLOCK, 7]), Answer::Value(0));
        assert_eq!(
            (machine.semihosting.output.len(), machine.semihosting.lost_output),
            (MAX_OUTPUT, 7)
        );
    }

    #[test]
    fn written_records_address_and_length() {
        let mut machine = machine();
        machine.semihosting.input.extend(b"abcdef");
        assert_eq!(call(&mut machine, 0x06, &[CONSOLE_IN, BUFFER, 4]), Answer::Value(0));
        assert_eq!(machine.semihosting.written, [(BUFFER, 4)]);
        // The second byte has no memory to go to and remains in the input.
        assert_eq!(call(&mut machine, 0x06, &[CONSOLE_IN, END - 1, 9]), Answer::Value(8));
        assert_eq!(machine.semihosting.written, [(END - 1, 1)]);
        assert_eq!(
            call(&mut machine, 0x06, &[CONSOLE_IN, BUFFER, u32::MAX]),
            Answer::Value(u32::MAX - 1)
        );
        assert_eq!(machine.semihosting.written, [(BUFFER, 1)]);
        assert_eq!(machine.core.memory.slice(BUFFER, 4), Some(&b"fbcd"[..]));
        machine.semihosting.command_line = "words".into();
        assert_eq!(call(&mut machine, 0x15, &[BUFFER, 5]), Answer::Value(FAILED));
        assert_eq!(machine.semihosting.written, []);
        assert_eq!(call(&mut machine, 0x15, &[BUFFER, 6]), Answer::Value(0));
        assert_eq!(machine.semihosting.written, [(BUFFER, 6), (BLOCK + 4, 4)]);
    }

    #[test]
    fn bytes_of_calls_are_counted_where_they_were_read_or_printed() {
        let mut machine = machine();
        machine.semihosting.input.extend(b"abcdef");
        // No memory to read to, then four bytes, then a print of 100.
        for (number, words, handled) in [
            (0x06, [CONSOLE_IN, 0x3000_0000, 6], 0),
            (0x06, [CONSOLE_IN, BUFFER, 4], 4),
            (0x05, [CONSOLE_OUT, BUFFER, 100], 104),
            (0x05, [9, BUFFER, 100], 104),
        ] {
            call(&mut machine, number, &words);
            assert_eq!(machine.semihosting.handled, handled, "{number} {words:x?}");
        }
        assert!(machine.core.memory.program(BUFFER, &[b'a'; 50]));
        machine.core.registers.r[..2].copy_from_slice(&[0x04, BUFFER]);
        machine.semihosting.call(&mut machine.core);
        assert_eq!(machine.semihosting.handled, 154);
    }

    #[test]
    fn output_from_unmapped_memory_names_its_first_address() {
        let mut machine = machine();
        for (number, words, unmapped) in [
            (0x05, vec![CONSOLE_OUT, 0x3000_0000, 1], 0x3000_0000),
            (0x05, vec![CONSOLE_ERROR, END - 1, 2], END),
            (0x05, vec![CONSOLE_OUT, BLOCK, u32::MAX], 0),
            (0x01, vec![0x3000_0000, 4, 3], 0x3000_0000),
            (0x15, vec![BUFFER, 0], 0),
        ] {
            let expected = match unmapped {
                0 => call(&mut machine, number, &words),
                address => Answer::Unmapped { number, address },
            };
            assert_eq!(call(&mut machine, number, &words), expected);
            assert_eq!(matches!(expected, Answer::Value(_)), unmapped == 0);
        }
        for (number, parameter) in [(0x03, 0x3000_0000), (0x04, 0x3000_0000), (0x05, END - 8)] {
            machine.core.registers.r[..2].copy_from_slice(&[number, parameter]);
            let address = if number == 0x05 { END } else { parameter };
            let answer = machine.semihosting.call(&mut machine.core);
            assert_eq!(answer, Answer::Unmapped { number, address });
        }
        // A string without a zero byte up to the end of its memory.
        assert!(machine.core.memory.program(END - 4, b"abcd"));
        machine.core.registers.r[..2].copy_from_slice(&[0x04, END - 4]);
        let answer = machine.semihosting.call(&mut machine.core);
        assert_eq!(answer, Answer::Unmapped { number: 0x04, address: END });
    }

    #[test]
    fn string_that_ends_at_the_end_of_its_memory_is_printed() {
        let mut machine = machine();
        assert!(machine.core.memory.program(END - 4, b"abc\0"));
        machine.core.registers.r[..2].copy_from_slice(&[0x04, END - 4]);
        assert_eq!(machine.semihosting.call(&mut machine.core), Answer::Value(0));
        assert_eq!(machine.semihosting.output, b"abc");
    }

    #[test]
    fn bytes_beyond_the_longest_write_are_reported_as_not_written() {
        let mut machine = machine();
        let words = [CONSOLE_OUT, BLOCK, MAX_WRITE + 5];
        assert_eq!(call(&mut machine, 0x05, &words), Answer::Value(5));
        assert_eq!(machine.semihosting.output.len(), MAX_WRITE as usize);
    }
}
