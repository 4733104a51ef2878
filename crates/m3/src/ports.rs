// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports that only this simulator has, at the top of the address space, where a Cortex-M3 leaves room for its vendor.
//! `include/warifu_m3.h` has the macros that programs use.

use std::collections::VecDeque;
use std::fmt;

use crate::timing::Cycles;

/// The ports' first address.
pub const BASE: u32 = 0xf000_0000;
/// A secret's address, for the next command.
pub const TAINT_ADDRESS: u32 = BASE;
/// A secret's length in bytes.
pub const TAINT_LENGTH: u32 = BASE + 4;
/// 1 poisons, 0 unpoisons.
pub const TAINT_COMMAND: u32 = BASE + 8;
/// A byte from the pipe; a byte written goes into it.
pub const PIPE_DATA: u32 = BASE + 0x100;
/// How many bytes can be read at once; 0xffffffff when there will be no more.
pub const PIPE_STATUS: u32 = BASE + 0x104;
/// The address of a text that ends with a zero byte: a mark in the record of the run.
pub const MARK: u32 = BASE + 0x200;
const END: u32 = BASE + 0x1000;
/// So many marks and requests are kept: an endless loop must not take all of the host's memory.
const MOST: usize = 1 << 20;

/// So many bytes of a mark's text are its name.
pub const LONGEST_NAME: u32 = 256;

/// The other end of the pipe.
pub trait Pipe: Send {
    /// The program wrote a byte.
    fn write(&mut self, byte: u8);
    /// The next byte for the program, if there is one now.
    fn read(&mut self) -> Option<u8>;
    /// How many bytes there are now; `None` when there will be no more.
    fn available(&mut self) -> Option<usize>;
}

/// A pipe whose bytes are known beforehand; what the program writes is kept.
#[derive(Debug, Default)]
pub struct Scripted {
    /// What the program will read.
    pub incoming: VecDeque<u8>,
    /// What it wrote.
    pub outgoing: Vec<u8>,
}

impl Pipe for Scripted {
    fn write(&mut self, byte: u8) {
        self.outgoing.push(byte);
    }

    fn read(&mut self) -> Option<u8> {
        self.incoming.pop_front()
    }

    fn available(&mut self) -> Option<usize> {
        Some(self.incoming.len()).filter(|left| *left > 0)
    }
}

/// A moment that the program marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where its text is: [`LONGEST_NAME`] bytes of it at most.
    pub text: u32,
    /// When.
    pub at: Cycles,
    /// The stack pointer then.
    pub stack: u32,
}

/// The ports' state.
#[derive(Default)]
pub struct Ports {
    /// The pipe's other end.
    pub pipe: Option<Box<dyn Pipe>>,
    /// Moments that the program marked.
    pub marks: Vec<Mark>,
    /// Marks that were not kept, as there were too many.
    pub lost_marks: u64,
    /// What the taint port was asked for and [`crate::taint`] has not taken yet.
    pub taint_requests: Vec<TaintRequest>,
    taint_address: u32,
    taint_length: u32,
}

/// A command of the taint port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaintRequest {
    /// The first byte.
    pub address: u32,
    /// How many bytes.
    pub bytes: u32,
    /// Secret from now on, or no longer.
    pub poison: bool,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").field("marks", &self.marks).finish_non_exhaustive()
    }
}

impl Ports {
    /// Whether an address is a port's.
    pub fn holds(at: u32) -> bool {
        (BASE..END).contains(&at)
    }

    /// A load from a port.
    pub fn read(&mut self, at: u32) -> u32 {
        match (at & !3, &mut self.pipe) {
            (PIPE_DATA, Some(pipe)) => pipe.read().map_or(0, u32::from),
            (PIPE_STATUS, Some(pipe)) => pipe.available().map_or(u32::MAX, |count| count as u32),
            (PIPE_STATUS, None) => u32::MAX,
            _ => 0,
        }
    }

    /// A store to a port.
    pub fn write(&mut self, at: u32, value: u32, now: Cycles, stack: u32) {
        match at & !3 {
            TAINT_ADDRESS => self.taint_address = value,
            TAINT_LENGTH => self.taint_length = value,
            // Nobody follows secrets then.
            TAINT_COMMAND if self.taint_requests.len() >= MOST => {}
            TAINT_COMMAND => self.taint_requests.push(TaintRequest {
                address: self.taint_address,
                bytes: self.taint_length,
                poison: value == 1,
            }),
            PIPE_DATA => {
                if let Some(pipe) = &mut self.pipe {
                    pipe.write(value as u8);
                }
            }
            MARK if self.marks.len() >= MOST => self.lost_marks += 1,
            MARK => self.marks.push(Mark { text: value, at: now, stack }),
            _ => {}
        }
    }
}
