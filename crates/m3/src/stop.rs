// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a run ended.

use std::fmt;

use crate::core::{Exception, Fault};

/// Why a run ended. All but [`Stop::Exit`] with code 0 are failures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `address` is the instruction's
pub enum Stop {
    /// The program ended itself.
    Exit { code: u32 },
    /// The limit of instructions was reached.
    InstructionLimit { limit: u64 },
    /// [`crate::machine::Machine::pause_at`] was reached.
    Paused,
    /// A fault that no handler of the program's takes.
    Fault { fault: Fault, address: u32 },
    /// An exception could not be entered.
    ExceptionEntry { exception: Exception, fault: Fault, address: u32 },
    /// A fault in the handler of a fault.
    Lockup { address: u32 },
    /// BKPT that is not semihosting's.
    Breakpoint { number: u8, address: u32 },
    /// WFI or WFE, and nothing will ever wake the chip.
    Asleep { address: u32 },
    /// SYSRESETREQ.
    Reset { address: u32 },
    /// The stack grew below its limit.
    StackOverflow { stack: u32, limit: u32, address: u32 },
    /// A semihosting call that is not known.
    UnknownSemihosting { number: u32, address: u32 },
}

impl Stop {
    /// Whether the program ended as it meant to, without an error.
    pub fn is_success(&self) -> bool {
        *self == Stop::Exit { code: 0 }
    }

    /// One word for programs.
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
        }
    }

    /// The instruction at which it ended, if it did not end itself.
    pub fn address(&self) -> Option<u32> {
        match *self {
            Stop::Exit { .. } | Stop::InstructionLimit { .. } | Stop::Paused => None,
            Stop::Fault { address, .. }
            | Stop::ExceptionEntry { address, .. }
            | Stop::Lockup { address }
            | Stop::Breakpoint { address, .. }
            | Stop::Asleep { address }
            | Stop::Reset { address }
            | Stop::StackOverflow { address, .. }
            | Stop::UnknownSemihosting { address, .. } => Some(address),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Exit { code } => write!(f, "the program ended with code {code}"),
            Stop::InstructionLimit { limit } => write!(
                f,
                "still running after {limit} instructions: an endless loop, or a longer run (--max-instructions)"
            ),
            Stop::Paused => write!(f, "paused"),
            Stop::Fault { fault, .. } => write!(f, "{fault}"),
            Stop::ExceptionEntry { exception, fault, .. } => {
                write!(f, "exception {} could not be entered: {fault}", exception.0)
            }
            Stop::Lockup { .. } => write!(f, "lockup: a fault within the handler of a fault"),
            Stop::Breakpoint { number, .. } => {
                write!(f, "breakpoint {number} (BKPT), and no debugger")
            }
            Stop::Asleep { .. } => {
                write!(f, "asleep for ever: WFI or WFE, and no interrupt will come")
            }
            Stop::Reset { .. } => write!(f, "the program asked for a reset (AIRCR.SYSRESETREQ)"),
            Stop::StackOverflow { stack, limit, .. } => {
                write!(f, "stack overflow: SP is {stack:#010x}, below the limit {limit:#010x}")
            }
            Stop::UnknownSemihosting { number, .. } => {
                write!(f, "semihosting call {number:#x} is not known here")
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Undefined => write!(f, "undefined instruction (UsageFault UNDEFINSTR)"),
            Fault::Coprocessor => {
                write!(
                    f,
                    "coprocessor or floating-point instruction, which a Cortex-M3 does not have (UsageFault NOCP)"
                )
            }
            Fault::InvalidState { target } => {
                write!(
                    f,
                    "jump to {target:#010x}, whose bit 0 does not say Thumb (UsageFault INVSTATE)"
                )
            }
            Fault::SupervisorCall => {
                write!(
                    f,
                    "SVC where its handler may not run: PRIMASK or a handler of its priority (HardFault)"
                )
            }
            Fault::InvalidReturn { value } => {
                write!(
                    f,
                    "return from an exception by {value:#010x}, which does not fit (UsageFault INVPC)"
                )
            }
            Fault::Unaligned { address } => {
                write!(f, "unaligned access to {address:#010x} (UsageFault UNALIGNED)")
            }
            Fault::DivideByZero => write!(f, "division by zero (UsageFault DIVBYZERO)"),
            Fault::Data { address, write: true } => {
                write!(f, "store to {address:#010x}, where nothing can be stored (BusFault)")
            }
            Fault::Data { address, write: false } => {
                write!(f, "load from {address:#010x}, where there is nothing (BusFault)")
            }
            Fault::Fetch { address } => {
                write!(f, "wild jump to {address:#010x}, where there is no memory (BusFault)")
            }
            Fault::ExecuteNever { address } => {
                write!(
                    f,
                    "wild jump to {address:#010x}, where nothing can be executed (MemManage IACCVIOL)"
                )
            }
        }
    }
}
