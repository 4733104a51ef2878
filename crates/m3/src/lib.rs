// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Cortex-M3 in software.
//!
//! - [`isa`]: the ARMv7-M integer instruction set, decoded.
//! - [`core`]: what instructions do to registers and memory, exceptions, system registers.
//! - [`timing`]: cycles by rules that are data, each with its source; two readings of them give a band.
//! - [`machine`]: a chip that runs a program and says why it stopped.
//! - [`profile`]: an onlooker that tells where its cycles go; [`size`]: what it takes of flash and memory.
//! - [`taint`]: an onlooker that follows secrets; [`source`]: files and lines of addresses.
//!
//! Nothing here does input or output: programs, and what they read, are arguments.
#![warn(clippy::unwrap_used)]

pub mod block;
pub mod chip;
pub mod core;
pub mod isa;
pub mod machine;
pub mod memory;
pub mod ports;
pub mod profile;
pub mod program;
pub mod semihosting;
pub mod session;
pub mod size;
pub mod source;
pub mod stop;
pub mod taint;
pub mod timing;
