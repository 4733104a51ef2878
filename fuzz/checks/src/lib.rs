// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What must hold for any input, a module for each fuzz target. The targets of `fuzz_targets/` hand
//! their inputs to these functions, and `cargo test` hands them every seed.

pub mod agent;
pub mod apdu;
pub mod dds_crypto;
pub mod link_config;
pub mod m3_elf;
pub mod m3_gdb;
pub mod m3_run;
pub mod m3_source;
pub mod modem;
pub mod pkcs11;
pub mod profile_parse;
pub mod study_parse;
pub mod tls_config;
pub mod unit_parse;
