// SPDX-License-Identifier: Apache-2.0 OR MIT
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| warifu_fuzz_checks::tls_config::check(text));
