// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of this simulator, in the vendor-specific region of the address space (DDI 0403E table
//! B3-1). `include/warifu_m3.h` has the macros that programs use.

use std::collections::VecDeque;
use std::fmt;

use crate::timing::Cycles;

/// The ports' first address.
pub const BASE: u32 = 0xf000_0000;
/// The address of a secret, for the next command.
pub const TAINT_ADDRESS: u32 = BASE;
/// The length of a secret in bytes, for the next command.
pub const TAINT_LENGTH: u32 = BASE + 4;
/// 1 poisons, 0 unpoisons.
pub const TAINT_COMMAND: u32 = BASE + 8;
/// The pipe: a load takes its next byte, a store sends one.
pub const PIPE_DATA: u32 = BASE + 0x100;
/// How many bytes the pipe has ready; 0xffffffff at its end.
pub const PIPE_STATUS: u32 = BASE + 0x104;
/// A store of the address of a zero-terminated name sets a mark in the run.
pub const MARK: u32 = BASE + 0x200;
const END: u32 = BASE + 0x1000;
/// Marks and requests kept at most: an endless loop must not exhaust the host's memory.
const MAX_KEPT: usize = 1 << 20;

/// Bytes of a mark's name at most.
pub const MAX_NAME_BYTES: u32 = 256;

/// The other end of the pipe.
pub trait Pipe: Send {
    /// The program wrote a byte.
    fn write(&mut self, byte: u8);
    /// The next byte for the program, if one is ready.
    fn read(&mut self) -> Option<u8>;
    /// How many bytes are ready; `None` at the end.
    fn available(&mut self) -> Option<usize>;
}

/// A pipe with prepared input that records what the program writes.
#[derive(Debug, Default)]
pub struct Scripted {
    /// What the program is going to read.
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
    /// The address of its name, of which [`MAX_NAME_BYTES`] count.
    pub text: u32,
    /// The clock at the mark.
    pub at: Cycles,
    /// The stack pointer at the mark.
    pub stack: u32,
}

/// The ports' state.
#[derive(Default)]
pub struct Ports {
    /// The pipe's other end.
    pub pipe: Option<Box<dyn Pipe>>,
    /// Moments that the program marked.
    pub marks: Vec<Mark>,
    /// Marks dropped because the list was full.
    pub lost_marks: u64,
    /// Requests to the taint port that [`crate::taint`] has not taken yet.
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
    /// Whether the bytes become secret or public.
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
            // The list is full only where no taint observer empties it.
            TAINT_COMMAND if self.taint_requests.len() >= MAX_KEPT => {}
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
            MARK if self.marks.len() >= MAX_KEPT => self.lost_marks += 1,
            MARK => self.marks.push(Mark { text: value, at: now, stack }),
            _ => {}
        }
    }
}
