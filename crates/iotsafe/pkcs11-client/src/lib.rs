// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any PKCS#11 module as a program that signs uses it: which token, which key, and then the five
//! calls of a signature, each timed on a clock that is given.
//!
//! - [`Module`]: a shared library, its functions safe to call.
//! - [`Wanted`] names token and key, [`Caller::prepare`] finds them and logs in once.
//! - [`Caller::open`] and [`Caller::sign`] make the calls of the paper's Table 1.

mod caller;
mod choice;
mod error;
mod module;

pub use caller::{Call, CallTimes, Caller, KEPT_CALLS, OPENING_CALLS};
pub use choice::{KeyFound, TokenFound, Wanted};
pub use error::CallerError;
pub use module::{GetFunctionList, LibraryInfo, Module, TokenInfo};
