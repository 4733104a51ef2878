// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any text is a profile, or one mistake of one line that names the file. The laws of an
//! accepted profile keep their bounds; what a recipe and a device's primitives make of each other
//! is a cost within bounds, or one mistake of one line.

use std::sync::LazyLock;

use warifu_model::{
    Catalog, Cost, Costs, Distribution, KeyStoreCall, Operation, ProfileKind, Stack, Study,
};

/// A library whose recipes are few, and a board whose primitives are.
const RECIPES: &str = include_str!("../../seeds/profile_parse/recipe.toml");
const BOARD: &str = include_str!("../../seeds/profile_parse/device-of-primitives.toml");

/// A handshake of each version.
static STACKS: LazyLock<Vec<Stack>> = LazyLock::new(|| {
    let mut catalog = Catalog::default();
    let profiles = [
        (ProfileKind::Device, "fuzz", BOARD),
        (
            ProfileKind::KeyStore,
            "software",
            include_str!("../../../profiles/key-stores/software.toml"),
        ),
        (ProfileKind::Link, "loopback", include_str!("../../../profiles/links/loopback.toml")),
        (ProfileKind::Tcp, "linux-6.18", include_str!("../../../profiles/tcp/linux-6.18.toml")),
    ];
    for (kind, name, text) in profiles {
        catalog.add(kind, name, text, name).expect("a profile that can be read");
    }
    let text = "name = \"fuzz\"\nseed = 1\ntrials = 1\ndevice = \"fuzz\"\nserver = \"fuzz\"\n\
                link = \"loopback\"\nstack = \"https\"\n\
                [vary]\n\"stack.tls\" = [\"1.2\", \"1.3\"]\n\"stack.chain_length\" = [1, 3]\n";
    let study = Study::parse(text, "fuzz.toml", &catalog).expect("a study that can be read");
    study.cases.into_iter().map(|case| case.stack).collect()
});

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
        let other = match kind {
            ProfileKind::Device => catalog.add(ProfileKind::Recipe, "fuzz", RECIPES, "fuzz.toml"),
            ProfileKind::Recipe => catalog.add(ProfileKind::Device, "fuzz", BOARD, "fuzz.toml"),
            _ => continue,
        };
        other.expect("a profile that can be read");
        if let Some(costs) = catalog.costs("fuzz") {
            check_costs(costs);
        }
    }
}

fn check_costs(costs: Costs<'_>) {
    for stack in STACKS.iter() {
        for operation in Operation::all() {
            for bytes in [0, 1_000, 20_000_000] {
                match costs.cost(operation, stack, bytes) {
                    Ok(cost) => check_cost(&cost),
                    Err(error) => {
                        let line = error.to_string();
                        assert_eq!(line.lines().count(), 1, "{line:?}");
                        assert!(line.starts_with("fuzz.toml: ") && line.len() < 2_000, "{line:?}");
                    }
                }
            }
        }
    }
}

fn check_cost(cost: &Cost<'_>) {
    check_law(&cost.warm);
    check_law(&cost.cold);
    let Some(lowered) = &cost.lowered else { return };
    let (all, parts) = ((cost.warm.mean().0 + cost.bytes_cost.0) as f64, lowered.warm_ns());
    assert!((all - parts).abs() <= 2.0 + 1e-9 * parts, "{all} {parts}");
    assert!((0.0..=1.0 + 1e-9).contains(&lowered.remainder_share()));
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
