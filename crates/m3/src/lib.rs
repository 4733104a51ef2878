// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Cortex-M3 simulator.
//!
//! - [`isa`]: the ARMv7-M integer instruction set, decoded.
//! - [`core`]: what instructions do to registers and memory, exceptions, system registers.
//! - [`timing`]: cycle counts by rules that are data, each with its source; two readings of a rule
//!   give a band.
//! - [`chip`]: chips from TOML files; [`memory`], [`peripherals`], [`flash`]: what is on their bus.
//! - [`machine`]: a chip that runs a program and reports why it stopped.
//! - [`profile`]: an observer that attributes cycles to functions; [`size`]: use of flash and RAM.
//! - [`taint`]: an observer that tracks secrets; [`source`]: source files and lines of addresses.
//! - [`trace`]: an observer that writes a line an instruction.
//! - [`debug`]: gdb's remote protocol, bytes in and bytes out.
//!
//! Nothing here does input or output: programs and their input are arguments.
#![warn(clippy::unwrap_used)]

pub mod access;
pub mod block;
pub mod chip;
pub mod core;
pub mod debug;
pub mod flash;
pub mod isa;
pub mod machine;
pub mod memory;
pub mod peripherals;
pub mod ports;
pub mod printable;
pub mod profile;
pub mod program;
pub mod semihosting;
pub mod session;
pub mod size;
pub mod source;
pub mod stop;
pub mod taint;
pub mod timing;
pub mod trace;
