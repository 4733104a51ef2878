// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads a study with every shipped profile, again and again, for a clock and a profiler.
//!
//! `cargo run --release --example read_study -- [TIMES]`

use std::hint::black_box;
use std::time::Instant;

use warifu_model::{Catalog, ProfileKind, Study};

#[path = "../tests/common/mod.rs"]
mod common;

/// Studies on the largest of the shipped profiles.
const STUDIES: &str = "tests/goldens/predictions";

fn main() {
    let times: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(100);
    let studies = common::toml_files(STUDIES);
    let (_, study, file) =
        studies.iter().find(|(name, ..)| name == "first-loop").expect("the study is there");
    let profiles: Vec<_> = ProfileKind::ALL
        .into_iter()
        .flat_map(|kind| {
            let texts = common::toml_files(&format!("profiles/{}", kind.folder()));
            texts.into_iter().map(move |text| (kind, text))
        })
        .collect();
    let mut times_ms: Vec<f64> = Vec::with_capacity(times);
    for _ in 0..times {
        let begin = Instant::now();
        let mut catalog = Catalog::default();
        for (kind, (name, text, file)) in &profiles {
            catalog.add_or_keep_mistake(*kind, name, text, file);
        }
        let read = Study::parse_with(study, file, &[], &catalog).expect("the study is right");
        black_box((&read, &catalog));
        times_ms.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times_ms.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (times_ms.first(), times_ms.last()) else { return };
    println!("{:.3} ms, {least:.3} to {most:.3}", times_ms[times_ms.len() / 2]);
}
