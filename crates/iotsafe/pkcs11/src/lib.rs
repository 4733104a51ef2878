// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A PKCS#11 module (2.40 and 3.0) for IoT SAFE cards.
//!
//! - [`functions`]: the functions of the standard, chapter by chapter, without pointers.
//! - [`library::Library`], [`slot::Slot`], [`session::Session`], [`object::Object`]: their state.
//! - [`ffi`]: the thin C shell around them, and the one place with `unsafe`. A panic inside becomes
//!   CKR_GENERAL_ERROR.

pub mod certificate;
pub mod config;
pub mod der;
pub mod digest;
pub mod ffi;
pub mod functions;
pub mod library;
pub mod mechanism;
pub mod object;
pub mod object_table;
pub mod operation;
pub mod output;
pub mod rv;
pub mod session;
pub mod slot;
pub mod template;
mod text;
pub mod trace;
