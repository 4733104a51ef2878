// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of PKCS#11, a file for each chapter of section 5 of its base specification.

pub mod general_purpose;
pub mod key_management;
pub mod message_digesting;
pub mod object_management;
pub mod random_numbers;
pub mod session_management;
pub mod signing;
pub mod slot_token_management;
pub mod verifying;
