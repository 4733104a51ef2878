// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is stored of cases of the exact tier.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use warifu_model::{Catalog, Metric, ProfileKind, Study};
use warifu_results::{CaseRows, Memory, Weights};
use warifu_runner::{Options, Progress, Tier, check, predict};

/// A link without loss, and one that loses 2 %, between two machines that were calibrated.
const STUDY: &str = "name = \"exact\"\nseed = 1\ntrials = 1\ndevice = \"xeon-2-5-ghz-vm\"\n\
                     server = \"xeon-2-5-ghz-vm\"\nkey_store = \"software\"\n\
                     stack = \"https/tls1.3\"\n[link]\nprofile = \"loopback\"\nrtt = \"60 ms\"\n\
                     [vary]\n\"link.loss\" = [\"0 %\", \"2 %\"]\n";

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../profiles");
    for (kind, name) in [
        (ProfileKind::Device, "xeon-2-5-ghz-vm"),
        (ProfileKind::KeyStore, "software"),
        (ProfileKind::Link, "loopback"),
        (ProfileKind::Tcp, "linux-6.18"),
    ] {
        let path = root.join(kind.folder()).join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        catalog.add(kind, name, &text, name).unwrap();
    }
    catalog
}

/// What the weights of a metric and of failing lack to one.
fn lacking(case: &CaseRows, metric: Metric) -> f64 {
    let of_either = |of: Metric| [metric, Metric::ConnectionFailed].contains(&of);
    let rows = case.rows.iter().filter(|row| row.stage.is_none() && of_either(row.metric));
    1.0 - rows.map(|row| row.weight).sum::<f64>()
}

/// Readers know what was left out by this alone (python/warifu/results/folder.py).
#[test]
fn weights_of_a_time_and_of_failing_lack_the_residual_to_one() {
    let catalog = catalog();
    let study = Study::parse(STUDY, "exact.toml", &catalog).unwrap();
    let options = Options { tier: Tier::Exact, ..Options::default() };
    let (mut kept, cancel) = (Memory::default(), AtomicBool::new(false));
    let done = predict(&study, &catalog, options, &mut kept, &mut |_| {}, &cancel).unwrap();
    let [lossless, lossy] = &kept.cases[..] else { panic!("{} cases", kept.cases.len()) };
    assert!(done.residual > 1e-9 && done.residual <= 1e-3, "{done:?}");
    for metric in [Metric::HttpsEstablishment, Metric::TcpConnect] {
        assert!((lacking(lossy, metric) - done.residual).abs() < 1e-10);
    }
    assert_eq!(lossy.weights, Weights::Probabilities);
    // One pattern, of which there are trials.
    assert_eq!((lossless.weights, done.exact), (Weights::Trials, 1));
    let noise = kept.noise.unwrap();
    assert_eq!(noise.cases.keys().collect::<Vec<_>>(), [&lossy.case_id.0]);
}

/// What is stored until a run is cut short has its noise.
#[test]
fn noise_of_a_run_that_was_cut_short() {
    let catalog = catalog();
    let text = STUDY.replace("\"0 %\", \"2 %\"", "\"1 %\", \"2 %\", \"3 %\"");
    let study = Study::parse(&text, "exact.toml", &catalog).unwrap();
    let options = Options { tier: Tier::Exact, threads: 1, ..Options::default() };
    let (mut kept, cancel) = (Memory::default(), AtomicBool::new(false));
    let mut tell = |done: Progress| cancel.store(done.cases > 0, Ordering::Relaxed);
    let done = predict(&study, &catalog, options, &mut kept, &mut tell, &cancel).unwrap();
    assert!(!done.complete && kept.cases.len() == 1, "{done:?}");
    let noise = kept.noise.unwrap();
    assert_eq!(noise.cases.keys().collect::<Vec<_>>(), [&kept.cases[0].case_id.0]);
}

/// What is told as the standard error is what shares and means of other seeds differ by.
#[test]
fn noise_of_the_costs_that_are_drawn() {
    const SEEDS: u32 = 24;
    let catalog = catalog();
    let metric = Metric::HttpsEstablishment;
    let options = Options { tier: Tier::Exact, ..Options::default() };
    let mut found = Vec::new();
    for seed in 0..SEEDS {
        let text = STUDY.replace("\"0 %\", \"2 %\"", "\"2 %\"");
        let text = text.replace("seed = 1", &format!("seed = {seed}"));
        let study = Study::parse(&text, "exact.toml", &catalog).unwrap();
        let (mut kept, cancel) = (Memory::default(), AtomicBool::new(false));
        predict(&study, &catalog, options, &mut kept, &mut |_| {}, &cancel).unwrap();
        let rows = kept.cases[0].rows.iter();
        let atoms: Vec<(f64, f64)> = rows
            .filter(|row| row.metric == metric && row.stage.is_none())
            .map(|row| (row.value, row.weight))
            .collect();
        let mut noise = kept.noise.unwrap();
        let of_case = noise.cases.pop_first().unwrap().1;
        found.push((atoms, noise.band_ends, of_case[metric.name()].clone()));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let deviation = |values: &[f64]| {
        let middle = mean(values);
        let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
        (mean(&squares) * f64::from(SEEDS) / f64::from(SEEDS - 1)).sqrt()
    };
    let quantile = |atoms: &[(f64, f64)], share: f64| {
        let mut below = 0.0;
        let reaches = |atom: &&(f64, f64)| {
            below += atom.1;
            below >= share
        };
        atoms.iter().find(reaches).map(|atom| atom.0)
    };
    for share in [0.1, 0.25, 0.5, 0.65, 0.9, 0.99] {
        let at = quantile(&found[0].0, share).unwrap();
        let shares: Vec<f64> = found
            .iter()
            .map(|(atoms, ..)| atoms.iter().filter(|atom| atom.0 <= at).map(|atom| atom.1).sum())
            .collect();
        let band = found[0].1.iter().position(|&end| mean(&shares) < end).unwrap();
        let told = mean(&found.iter().map(|of| of.2.share_errors[band]).collect::<Vec<_>>());
        let seen = deviation(&shares);
        // Phases are evenly spread, and the largest error of a band is told.
        assert!(seen < 1.4 * told && seen > told / 8.0, "{share}: {seen} {told}");
    }
    let means: Vec<f64> = found
        .iter()
        .map(|(atoms, ..)| {
            let all: f64 = atoms.iter().map(|atom| atom.1).sum();
            atoms.iter().map(|atom| atom.0 * atom.1).sum::<f64>() / all
        })
        .collect();
    let told = mean(&found.iter().map(|of| of.2.mean_error).collect::<Vec<_>>());
    let seen = deviation(&means);
    assert!(seen < 1.4 * told && seen > told / 4.0, "{seen} {told}");
}

/// What is sent again is lost as well: at 20 % loss the packets of a trial without loss would have
/// few patterns.
#[test]
fn patterns_of_what_is_sent_again_count() {
    let catalog = catalog();
    for (loss, qualifies) in [("2 %", true), ("5 %", true), ("10 %", false), ("40 %", false)] {
        let text = STUDY.replace("\"0 %\", \"2 %\"", &format!("\"{loss}\""));
        let study = Study::parse(&text, "exact.toml", &catalog).unwrap();
        assert_eq!(check(&study, &catalog, Tier::Exact).is_ok(), qualifies, "{loss}");
        let options = Options { tier: Tier::Auto, ..Options::default() };
        let (mut kept, cancel) = (Memory::default(), AtomicBool::new(false));
        let done = predict(&study, &catalog, options, &mut kept, &mut |_| {}, &cancel).unwrap();
        assert_eq!((done.exact, done.residual <= 0.002), (u64::from(qualifies), true), "{done:?}");
    }
}

/// A request of seventy packets at 20 % loss: no number of patterns has a share of its
/// probability, and finding them would take gigabytes.
#[test]
fn patterns_that_cannot_suffice_are_not_begun() {
    let catalog = catalog();
    let text = STUDY.replace("\"0 %\", \"2 %\"", "\"20 %\"");
    let text = format!("{text}[pattern]\nkind = \"request\"\nrequest_body = \"100 kB\"\n");
    let study = Study::parse(&text, "exact.toml", &catalog).unwrap();
    let refused = check(&study, &catalog, Tier::Exact).unwrap_err().to_string();
    assert!(refused.contains("would leave out some 100.00 % of connections"), "{refused}");
    assert_eq!(check(&study, &catalog, Tier::Auto), Ok(()));
    let options = Options { tier: Tier::Auto, ..Options::default() };
    let (mut kept, cancel) = (Memory::default(), AtomicBool::new(false));
    let done = predict(&study, &catalog, options, &mut kept, &mut |_| {}, &cancel).unwrap();
    assert_eq!((done.exact, done.cases, done.complete), (0, 1, true));
    assert_eq!(kept.cases[0].weights, Weights::Trials);
}
