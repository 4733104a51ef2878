// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles and cases that the tests, the example and the benchmark share.
#![allow(dead_code, reason = "each of them uses its own part")]

use std::path::Path;

use warifu_model::{Case, Catalog, Operation, ProfileKind, Study, every_choice};

/// The shipped kernels, key stores and links, a device `constant` that takes `time` for each
/// operation (twice when cold) and none in its interface, and a key store `constant` whose
/// signature takes 476 ms.
pub fn catalog(time: &str) -> Catalog {
    let mut catalog = Catalog::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../profiles");
    for kind in [ProfileKind::KeyStore, ProfileKind::Link, ProfileKind::Tcp] {
        let folder = root.join(kind.folder());
        for entry in std::fs::read_dir(&folder).expect("the profiles are there") {
            let path = entry.expect("a readable folder").path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
            let text = std::fs::read_to_string(&path).expect("a readable profile");
            catalog.add(kind, &name, &text, &name).expect("a valid profile");
        }
    }
    catalog
        .add(ProfileKind::Device, "constant", &device(time), "constant")
        .expect("a valid profile");
    let calls = "name = \"constant\"\ndescription = \"a stand-in\"\nsource = \"a test\"\n\
                 kind = \"measured\"\n[call]\nC_OpenSession = \"1 ms\"\nC_Login = \"1 ms\"\n\
                 C_FindObjects = \"1 ms\"\nC_SignInit = \"0 ms\"\nC_Sign = \"476 ms\"\n";
    catalog.add(ProfileKind::KeyStore, "constant", calls, "constant").expect("a valid profile");
    catalog
}

fn device(time: &str) -> String {
    let mut text = "name = \"constant\"\ndescription = \"a stand-in\"\nsource = \"a test\"\n\
                    kind = \"measured\"\nidle_threshold = \"5 ms\"\n"
        .to_owned();
    for operation in Operation::all() {
        let interface = operation.to_string().ends_with(".interface");
        let time = if interface { "0 ms" } else { time };
        let when = whatever(operation);
        text += &format!("[[operation]]\nname = \"{operation}\"\nwarm = \"{time}\"\n{when}");
    }
    text
}

/// The case that a study's text means, with device and server `constant`.
pub fn case(settings: &str, catalog: &Catalog) -> Case {
    let text = format!(
        "name = \"test\"\nseed = 1\ntrials = 1\ndevice = \"constant\"\nserver = \"constant\"\n\
         {settings}"
    );
    let study = Study::parse(&text, "test.toml", catalog).unwrap_or_else(|error| panic!("{error}"));
    study.cases.into_iter().next().expect("a study has a case")
}

/// TCP + TLS 1.3, full, mutual, 30 ms one way, 2 % loss, 476 ms for a signature, no other cost.
pub const REFERENCE: &str = "key_store = \"constant\"\n\
     [link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\nloss = \"2 %\"\n\
     [stack]\nprotocol = \"https\"\ntls = \"1.3\"\nsession = \"full\"\n\
     authentication = \"mutual\"\n";

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
