// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of the process, or of the module in it.

use std::panic::catch_unwind;

use crate::functions::general_purpose::end_of_process;

/// Called by the dynamic linker at exit() and dlclose() (System V ABI, Dynamic Linking,
/// "Initialization and Termination Functions").
#[used]
// SAFETY: the section holds pointers to functions without arguments, and this is one.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    // An error at exit cannot be reported.
    let _ = catch_unwind(end_of_process);
}
