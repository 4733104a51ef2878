// SPDX-License-Identifier: Apache-2.0 OR MIT
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use warifu_fuzz_checks::study_parse::check;

fuzz_target!(|text: &str| -> Corpus {
    if check(text) { Corpus::Keep } else { Corpus::Reject }
});
