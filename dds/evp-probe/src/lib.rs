// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Preloaded (`LD_PRELOAD`) into a program that uses OpenSSL 3 by its EVP functions, as Fast DDS
//! and Cyclone DDS do, it takes their place, calls them, and counts and times each message by who
//! began it. When the program ends, it adds lines of JSON to the file that `WARIFU_EVP_PROBE`
//! names.
//!
//! [`ledger`] counts, [`site`] says who called, [`evp`] holds the functions.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the probe knows where a caller's address is on x86_64 and aarch64 alone");

pub mod evp;
pub mod ledger;
pub mod site;
