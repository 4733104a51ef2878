// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every seed of every fuzz target, checked as the fuzzer checks it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, str};

use warifu_fuzz_checks as checks;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Hands each seed of a target to its check.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = fuzz().join("seeds").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("every target has seeds") {
        let path = entry.expect("a seed").path();
        println!("{}", path.display());
        check(&fs::read(&path).expect("a seed can be read"));
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

/// As libFuzzer's `&str` targets take bytes: up to the first that is not UTF-8.
fn text(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid so far"),
    }
}

macro_rules! seeds {
    ($($target:ident: $take:expr;)*) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target), |bytes| {
                    checks::$target::check($take(bytes));
                });
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let replayed = BTreeSet::from([$(stringify!($target).to_owned()),*]);
            let targets = fs::read_dir(fuzz().join("fuzz_targets")).expect("the targets");
            let targets: BTreeSet<String> = targets
                .map(|entry| entry.expect("a target").path())
                .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
                .collect();
            assert_eq!(replayed, targets);
        }
    };
}

seeds! {
    agent: |bytes| bytes;
    apdu: |bytes| bytes;
    dds_crypto: |bytes| bytes;
    link_config: text;
    m3_elf: |bytes| bytes;
    m3_gdb: |bytes| bytes;
    m3_run: |bytes| bytes;
    m3_source: |bytes| bytes;
    modem: |bytes| bytes;
    pkcs11: |bytes| bytes;
    profile_parse: text;
    study_parse: text;
    tls_config: text;
    unit_parse: text;
}
