// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a run ended.

use std::fmt;

use crate::core::{Exception, Fault};

/// Why a run ended. All but [`Stop::Exit`] with code 0 are failures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `address` is the instruction's
pub enum Stop {
    /// The program exited.
    Exit { code: u32 },
    /// The limit of instructions was reached.
    InstructionLimit { limit: u64 },
    /// [`crate::machine::Machine::pause_at`] was reached.
    Paused,
    /// A fault that no handler of the program takes.
    Fault { fault: Fault, address: u32 },
    /// An exception could not be entered.
    ExceptionEntry { exception: Exception, fault: Fault, address: u32 },
    /// A fault inside a fault handler.
    Lockup { address: u32 },
    /// BKPT other than semihosting's 0xAB.
    Breakpoint { number: u8, address: u32 },
    /// WFI or WFE with no interrupt that could wake the chip.
    Asleep { address: u32 },
    /// A system reset request (AIRCR.SYSRESETREQ).
    Reset { address: u32 },
    /// The stack grew below its limit.
    StackOverflow { stack: u32, limit: u32, address: u32 },
    /// An unsupported semihosting call.
    UnknownSemihosting { number: u32, address: u32 },
    /// A semihosting call that reads from `at`, where there is no memory.
    UnmappedSemihosting { number: u32, at: u32, address: u32 },
    /// A debugger ended the run.
    Killed,
}

impl Stop {
    /// Whether the program exited with code 0.
    pub fn is_success(&self) -> bool {
        *self == Stop::Exit { code: 0 }
    }

    /// A stable identifier for scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Stop::Exit { .. } => "exit",
            Stop::InstructionLimit { .. } => "instruction-limit",
            Stop::Paused => "paused",
            Stop::Fault { .. } => "fault",
            Stop::ExceptionEntry { .. } => "exception-entry",
            Stop::Lockup { .. } => "lockup",
            Stop::Breakpoint { .. } => "breakpoint",
            Stop::Asleep { .. } => "asleep",
            Stop::Reset { .. } => "reset",
            Stop::StackOverflow { .. } => "stack-overflow",
            Stop::UnknownSemihosting { .. } => "unknown-semihosting",
            Stop::UnmappedSemihosting { .. } => "unmapped-semihosting",
            Stop::Killed => "killed",
        }
    }

    /// The address of the instruction that stopped the run, unless the program exited.
    pub fn address(&self) -> Option<u32> {
        match *self {
            Stop::Exit { .. } | Stop::InstructionLimit { .. } | Stop::Paused | Stop::Killed => None,
            Stop::Fault { address, .. }
            | Stop::ExceptionEntry { address, .. }
            | Stop::Lockup { address }
            | Stop::Breakpoint { address, .. }
            | Stop::Asleep { address }
            | Stop::Reset { address }
            | Stop::StackOverflow { address, .. }
            | Stop::UnknownSemihosting { address, .. }
            | Stop::UnmappedSemihosting { address, .. } => Some(address),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Exit { code } => write!(f, "the program exited with code {code}"),
            Stop::InstructionLimit { limit } => write!(
                f,
                "still running after {limit} instructions: look for an endless loop, or raise \
                 --max-instructions"
            ),
            Stop::Paused => write!(f, "paused"),
            Stop::Fault { fault, .. } => write!(f, "{fault}"),
            Stop::ExceptionEntry { exception, fault, .. } => {
                write!(f, "exception {} could not be entered: {fault}", exception.0)
            }
            Stop::Lockup { .. } => write!(f, "lockup: a fault inside a fault handler"),
            Stop::Breakpoint { number, .. } => {
                write!(f, "breakpoint (BKPT {number}) without a debugger")
            }
            Stop::Asleep { .. } => {
                write!(f, "asleep forever: WFI or WFE with no interrupt that could wake it")
            }
            Stop::Reset { .. } => write!(f, "the program requested a reset (AIRCR.SYSRESETREQ)"),
            Stop::StackOverflow { stack, limit, .. } => {
                write!(f, "stack overflow: SP is {stack:#010x}, below the limit {limit:#010x}")
            }
            Stop::UnknownSemihosting { number, .. } => {
                write!(f, "unsupported semihosting call {number:#x}")
            }
            Stop::UnmappedSemihosting { number, at, .. } => write!(
                f,
                "semihosting call {name} reads from {at:#010x}, where there is no memory",
                name = semihosting_name(*number)
            ),
            Stop::Killed => write!(f, "killed by the debugger"),
        }
    }
}

/// The names of the calls that read a program's memory (Arm, Semihosting for AArch32 and AArch64).
fn semihosting_name(number: u32) -> String {
    let name = match number {
        0x01 => "SYS_OPEN",
        0x03 => "SYS_WRITEC",
        0x04 => "SYS_WRITE0",
        0x05 => "SYS_WRITE",
        0x06 => "SYS_READ",
        0x15 => "SYS_GET_CMDLINE",
        0x16 => "SYS_HEAPINFO",
        0x20 => "SYS_EXIT_EXTENDED",
        _ => return format!("{number:#x}"),
    };
    name.to_owned()
}
