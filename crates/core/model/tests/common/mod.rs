// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shipped profiles, and a small one that stands for a calibrated host.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use warifu_model::{Catalog, Operation, ProfileKind, every_choice};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Every TOML file of a folder, as stem, text and name, sorted.
pub fn toml_files(folder: &str) -> Vec<(String, String, String)> {
    let mut files: Vec<_> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_string();
            let file = format!("{folder}/{stem}.toml");
            (stem, fs::read_to_string(&path).unwrap(), file)
        })
        .collect();
    files.sort();
    files
}

/// Every operation at 10 us, cold 20 us.
pub fn host_profile(name: &str) -> String {
    let mut text = format!(
        "name = \"{name}\"\ndescription = \"a stand-in\"\nsource = \"a test\"\n\
         kind = \"measured\"\n\
         run_id = \"r1\"\nidle_threshold = \"2 ms\"\n"
    );
    for operation in Operation::all() {
        text += &format!(
            "[[operation]]\nname = \"{operation}\"\nwarm = \"10 us\"\ncold = \"20 us\"\n\
             per_byte = \"0.5 ns\"\n{}",
            whatever(operation)
        );
    }
    text
}

/// The shipped profiles and `this-host`.
pub fn catalog() -> &'static Catalog {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
        let mut catalog = Catalog::default();
        for kind in ProfileKind::ALL {
            for (name, text, file) in toml_files(&format!("profiles/{}", kind.folder())) {
                if name != "this-host" {
                    catalog.add(kind, &name, &text, &file).unwrap_or_else(|why| panic!("{why}"));
                }
            }
        }
        let host = host_profile("this-host");
        catalog.add(ProfileKind::Device, "this-host", &host, "this-host.toml").unwrap();
        catalog
    });
    &CATALOG
}

/// `when` of a figure that holds whatever an operation's cost may depend on, as a line.
pub fn whatever(operation: Operation) -> String {
    let quoted = |(key, words): &(&str, Vec<&str>)| {
        let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        format!("{key} = [{}]", words.join(", "))
    };
    let choices: Vec<String> = every_choice(operation).iter().map(quoted).collect();
    match choices.len() {
        0 => String::new(),
        _ => format!("when = {{ {} }}\n", choices.join(", ")),
    }
}
