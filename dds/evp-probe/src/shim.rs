// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The entries that the dynamic linker finds before OpenSSL's.
//!
//! Each passes its six argument registers on to [`handle`], with the place on the stack where its
//! return address lies: who called is known by that alone, and Rust has no word for it. A function
//! with fewer arguments ignores the rest, as the System V ABI (section 3.2.3) allows.

use crate::functions::FUNCTIONS;
use crate::operation;
use crate::real;
use crate::record::{self, Number};
use crate::site::Slot;

/// What OpenSSL's functions look like to a caller that passes every register.
pub type Real = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> usize;

/// Defines the exported entries, numbered as `FUNCTIONS`.
macro_rules! entries {
    ($($index:literal $name:ident)*) => {
        $(
            #[doc = concat!("In the place of ", stringify!($name), ".")]
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                // `push rsp` stores the value from before: the address of the return address. It
                // is handle's seventh argument, and aligns the stack for the call.
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "endbr64",
                    "push rsp",
                    ".cfi_adjust_cfa_offset 8",
                    "call {handle}",
                    "add rsp, 8",
                    ".cfi_adjust_cfa_offset -8",
                    "ret",
                    ".cfi_endproc",
                    handle = sym crate::shim::handle::<$index>,
                )
            }
        )*
    };
}
pub(crate) use entries;

/// One call of function `F`.
pub extern "C" fn handle<const F: usize>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    slot: *const usize,
) -> usize {
    // SAFETY: the entry passes the place of its return address; handle runs within its call.
    let slot = unsafe { Slot::new(slot) };
    let arguments = [a, b, c, d, e, f];
    let found = real::of(F, slot);
    let Some(function) = found.address else { return 0 };
    // The seventh argument of HMAC, the only one with so many, lies above the return address.
    let seventh =
        if matches!(FUNCTIONS[F].role, crate::functions::Role::Hmac) { slot.word(1) } else { 0 };
    // SAFETY: `function` is what the caller would have called, with the same arguments.
    let call = || real::call(function, |it| unsafe { it(a, b, c, d, e, f, seventh) });
    let file = record::file();
    if found.foreign {
        if let Some(file) = file {
            file.add(Number::foreign_calls, 1);
        }
        return call();
    }
    let Some(file) = file else { return crate::swap::call(F, &arguments, slot, call) };
    operation::observe(file, F, &arguments, slot, call)
}
