// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any text is a study, or at least one mistake of one line each that names the file. A study
//! that was accepted has distinct cases that survive their canonical form.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use warifu_model::{Case, Catalog, ProfileKind, Study, inputs};

/// The shipped profiles; the board stands for the calibrated host as well.
static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut catalog = Catalog::default();
    let board = include_str!("../../../profiles/devices/gr-peach.toml");
    let host = board.replace("name = \"gr-peach\"", "name = \"this-host\"");
    let card = include_str!("../../../profiles/key-stores/iot-safe-sakomoto.toml");
    let software = include_str!("../../../profiles/key-stores/software.toml");
    for (kind, name, text) in [
        (ProfileKind::Device, "gr-peach", board),
        (ProfileKind::Device, "this-host", host.as_str()),
        (ProfileKind::KeyStore, "iot-safe-sakomoto", card),
        (ProfileKind::KeyStore, "software", software),
        (ProfileKind::Link, "loopback", include_str!("../../../profiles/links/loopback.toml")),
        (ProfileKind::Link, "lte-m", include_str!("../../../profiles/links/lte-m.toml")),
        (ProfileKind::Link, "wifi", include_str!("../../../profiles/links/wifi.toml")),
        (ProfileKind::Tcp, "linux-6.18", include_str!("../../../profiles/tcp/linux-6.18.toml")),
    ] {
        catalog.add(kind, name, text, name).expect("a shipped profile can be read");
    }
    catalog
});

/// Checks one input. Whether it is worth keeping.
pub fn check(text: &str) -> bool {
    match Study::check(text, "fuzz.toml", &[], &CATALOG) {
        Err(list) => {
            assert!(!list.is_empty());
            for error in list {
                let line = error.to_string();
                assert_eq!(line.lines().count(), 1, "{line:?}");
                assert!(line.starts_with("fuzz.toml: ") && line.len() < 2_000, "{line:?}");
            }
        }
        Ok(study) => {
            // Large products are slow and find nothing that small ones do not.
            if study.cases.len() > 200 {
                return false;
            }
            let ids: BTreeSet<_> = study.cases.iter().map(Case::id).collect();
            assert_eq!(ids.len(), study.cases.len());
            for (index, case) in study.cases.iter().enumerate() {
                assert!(!inputs(case, &CATALOG).expect("every profile is known").is_empty());
                assert_eq!(case.columns().len(), warifu_model::case_columns().count());
                assert!(study.vary.is_empty() || !study.label(index).is_empty());
            }
        }
    }
    true
}
