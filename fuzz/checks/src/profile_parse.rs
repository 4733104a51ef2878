// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any text is a profile, or one mistake of one line that names the file. The laws of an
//! accepted profile keep their bounds.

use warifu_model::{Catalog, Distribution, KeyStoreCall, ProfileKind};

/// Checks one input.
pub fn check(text: &str) {
    for kind in ProfileKind::ALL {
        let mut catalog = Catalog::default();
        if let Err(error) = catalog.add(kind, "fuzz", text, "fuzz.toml") {
            let line = error.to_string();
            assert_eq!(line.lines().count(), 1, "{line:?}");
            assert!(line.starts_with("fuzz.toml: ") && line.len() < 2_000, "{line:?}");
            assert!(catalog.names(kind).is_empty());
        }
        for call in KeyStoreCall::ALL {
            let store = catalog.key_store("fuzz");
            if let Some(Ok(law)) = store.map(|store| store.call(call)) {
                check_law(law);
            }
        }
    }
}

fn check_law(law: &Distribution) {
    let (min, max) = (law.min(), law.max());
    for k in 0..=10 {
        let p = f64::from(k) / 10.0;
        assert!((min..=max).contains(&law.quantile(p)));
        assert!((min..=max).contains(&law.sample(p * 0.99, 1.0 - p)));
    }
    let slack = 1.0 + max.0 as f64 * 1e-9;
    assert!((min.0 as f64 - slack..=max.0 as f64 + slack).contains(&law.mean_ns()));
}
