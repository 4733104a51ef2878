// SPDX-License-Identifier: Apache-2.0 OR MIT
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| warifu_fuzz_checks::m3_source::check(bytes));
