// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults, and their messages.

use std::fmt;

/// Why an instruction could not be executed (DDI 0403E section B1.5.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// UsageFault UNDEFINSTR.
    Undefined,
    /// UsageFault NOCP.
    Coprocessor,
    /// UsageFault INVSTATE: a branch to an address whose bit 0 is clear.
    InvalidState {
        /// The address.
        target: u32,
    },
    /// SVC where SVCall cannot preempt the running code: a HardFault.
    SupervisorCall,
    /// UsageFault INVPC: an invalid EXC_RETURN value.
    InvalidReturn {
        /// The value.
        value: u32,
    },
    /// UsageFault UNALIGNED.
    Unaligned {
        /// The address.
        address: u32,
    },
    /// UsageFault DIVBYZERO, if CCR.DIV_0_TRP is set.
    DivideByZero,
    /// BusFault PRECISERR: no memory there, or it is read-only.
    Data {
        /// The address.
        address: u32,
        /// Whether it was a store.
        write: bool,
    },
    /// BusFault IBUSERR: an instruction fetch where there is no memory.
    Fetch {
        /// The address.
        address: u32,
    },
    /// MemManage IACCVIOL: an instruction fetch from a region that is never executable.
    ExecuteNever {
        /// The address.
        address: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Undefined => write!(f, "undefined instruction (UsageFault UNDEFINSTR)"),
            Fault::Coprocessor => {
                write!(
                    f,
                    "coprocessor or floating-point instruction, which a Cortex-M3 does not have \
                     (UsageFault NOCP)"
                )
            }
            Fault::InvalidState { target } => {
                write!(f, "jump to {target:#010x} without the Thumb bit (UsageFault INVSTATE)")
            }
            Fault::SupervisorCall => {
                write!(
                    f,
                    "SVC while PRIMASK is set or a handler of the same or a higher priority runs \
                     (HardFault)"
                )
            }
            Fault::InvalidReturn { value } => {
                write!(
                    f,
                    "exception return with the invalid EXC_RETURN value {value:#010x} \
                     (UsageFault INVPC)"
                )
            }
            Fault::Unaligned { address } => {
                write!(f, "unaligned access to {address:#010x} (UsageFault UNALIGNED)")
            }
            Fault::DivideByZero => write!(f, "division by zero (UsageFault DIVBYZERO)"),
            Fault::Data { address, write: true } => {
                write!(f, "store to {address:#010x}, where there is no writable memory (BusFault)")
            }
            Fault::Data { address, write: false } => {
                write!(f, "load from {address:#010x}, where there is no memory (BusFault)")
            }
            Fault::Fetch { address } => {
                write!(f, "wild jump to {address:#010x}, where there is no memory (BusFault)")
            }
            Fault::ExecuteNever { address } => {
                write!(
                    f,
                    "wild jump to {address:#010x}, which is never executable (MemManage IACCVIOL)"
                )
            }
        }
    }
}
