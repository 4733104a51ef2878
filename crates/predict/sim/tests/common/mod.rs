// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles and cases that the tests, the example and the benchmark share.
#![allow(dead_code, reason = "each of them uses its own part")]

use std::path::Path;

use warifu_model::{Case, Catalog, Mark, Operation, ProfileKind, Study, every_choice};
use warifu_sim::Outcome;

/// The shipped kernels, key stores and links, a device `constant` that takes `time` for each
/// operation (twice when cold) and none in its interface, and a key store `constant` whose
/// signature takes 476 ms; and the device that comes with Warifu and was calibrated.
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
    add_device(&mut catalog, "constant", &format!("\"{time}\""), "");
    let calibrated = root.join(ProfileKind::Device.folder()).join("xeon-2-5-ghz-vm.toml");
    let calibrated = std::fs::read_to_string(calibrated).expect("a readable profile");
    catalog
        .add(ProfileKind::Device, "xeon-2-5-ghz-vm", &calibrated, "xeon-2-5-ghz-vm")
        .expect("a valid profile");
    let calls = "name = \"constant\"\ndescription = \"a stand-in\"\nsource = \"a test\"\n\
                 kind = \"measured\"\n[call]\nC_OpenSession = \"1 ms\"\nC_Login = \"1 ms\"\n\
                 C_FindObjects = \"1 ms\"\nC_SignInit = \"0 ms\"\nC_Sign = \"476 ms\"\n";
    catalog.add(ProfileKind::KeyStore, "constant", calls, "constant").expect("a valid profile");
    catalog
}

/// Adds a device that takes a time by this law for each operation, as a profile has it, with these
/// settings of the device itself.
pub fn add_device(catalog: &mut Catalog, name: &str, law: &str, settings: &str) {
    let text = device(name, law, settings);
    catalog.add(ProfileKind::Device, name, &text, name).expect("a valid profile");
}

fn device(name: &str, law: &str, settings: &str) -> String {
    let mut text = "name = \"NAME\"\ndescription = \"a stand-in\"\nsource = \"a test\"\n\
                    kind = \"measured\"\nidle_threshold = \"5 ms\"\n"
        .replace("NAME", name);
    text += settings;
    for operation in Operation::all() {
        let interface = operation.to_string().ends_with(".interface");
        let law = if interface { "\"0 ms\"" } else { law };
        let when = whatever(operation);
        text += &format!("[[operation]]\nname = \"{operation}\"\nwarm = {law}\n{when}");
    }
    text
}

/// The case that a study's text means, with device and server `constant`.
pub fn case(settings: &str, catalog: &Catalog) -> Case {
    case_of("constant", settings, catalog)
}

/// The same with another device, which is also the server.
pub fn case_of(device: &str, settings: &str, catalog: &Catalog) -> Case {
    let text = format!(
        "name = \"test\"\nseed = 1\ntrials = 1\ndevice = \"{device}\"\nserver = \"{device}\"\n\
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

/// The same between two machines that were calibrated, so that every cost is drawn; the key is in
/// software.
pub const CALIBRATED: &str = "key_store = \"software\"\n\
     [link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\nloss = \"2 %\"\n\
     [stack]\nprotocol = \"https\"\ntls = \"1.3\"\nsession = \"full\"\n\
     authentication = \"mutual\"\n";

/// The device of [`CALIBRATED`].
pub const CALIBRATED_DEVICE: &str = "xeon-2-5-ghz-vm";

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

/// When the first response is there, ns; later than all where the connection failed.
pub fn time_ns(outcome: &Outcome) -> u64 {
    let connection = &outcome.connections[0];
    if connection.failed { u64::MAX } else { connection.marks[Mark::FirstResponse as usize] }
}

/// The smallest of ascending times, ns, that a share of all weights does not exceed.
pub fn quantile(atoms: &[(u64, f64)], share: f64) -> u64 {
    let all: f64 = atoms.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    let reached = |&&(_, weight): &&(u64, f64)| {
        below += weight;
        below >= share * all
    };
    atoms.iter().find(reached).map_or(u64::MAX, |&(time, _)| time)
}
