// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A PKCS#11 module (2.40 and 3.0) for IoT SAFE cards.
//!
//! Everything here is safe functions over a [`library::Library`], its [`slot::Slot`]s and
//! [`session::Session`]s; [`ffi`] is the thin C shell around them, and the one place with
//! `unsafe`. A panic inside becomes CKR_GENERAL_ERROR.

pub mod certificate;
pub mod config;
pub mod der;
pub mod destroying;
pub mod digest;
pub mod ffi;
pub mod finding;
pub mod hashing;
pub mod info;
pub mod keys;
pub mod library;
pub mod mechanism;
pub mod object;
pub mod objects;
pub mod output;
pub mod rv;
pub mod session;
pub mod signing;
pub mod slot;
pub mod template;
pub mod trace;
