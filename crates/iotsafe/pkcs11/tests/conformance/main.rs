// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls through the real function list, a file for each chapter of PKCS#11 2.40 section 5.

#[macro_use]
mod bench;
mod bad_calls;
mod general_purpose;
mod key_management;
mod message_digesting;
mod object_management;
mod panics;
mod random_numbers;
mod session_management;
mod sign_verify;
mod signing;
mod slot_token_management;
mod templates;
