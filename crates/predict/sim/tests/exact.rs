// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The exact tier beside the event tier.

mod common;

use common::{quantile, time_ns};
use warifu_sim::{Accuracy, Atom, CaseModel, Enumerated, Outcome, Simulator, trial_seed};

/// Trials of the event tier to which the exact one is held.
const EVENTS: u64 = 50_000;

fn model(device: &str, settings: &str) -> CaseModel {
    let catalog = common::catalog("0.1 ms");
    CaseModel::compile(&common::case_of(device, settings, &catalog), &catalog).unwrap()
}

fn calibrated(loss: &str) -> CaseModel {
    model(common::CALIBRATED_DEVICE, &common::CALIBRATED.replace("2 %", loss))
}

/// The times of all atoms, ascending, with their weights, and what was enumerated.
fn exact(model: &CaseModel, seed: u64) -> (Vec<(u64, f64)>, Enumerated) {
    let mut atoms = Vec::new();
    let keep = |atom: Atom, outcome: &Outcome| atoms.push((time_ns(outcome), atom.weight));
    let done =
        Simulator::new().enumerate(model, seed, Accuracy::default(), &mut || true, keep).unwrap();
    atoms.sort_unstable_by_key(|&(time, _)| time);
    (atoms, done)
}

fn events(model: &CaseModel, trials: u64) -> Vec<u64> {
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let case = warifu_model::CaseId("events".to_owned());
    let mut times: Vec<u64> = (0..trials)
        .map(|trial| {
            simulator.run(model, trial_seed(1, &case, trial), &mut outcome);
            time_ns(&outcome)
        })
        .collect();
    times.sort_unstable();
    times
}

/// The share of weights that a time is not below.
fn share(atoms: &[(u64, f64)], time: u64) -> f64 {
    let all: f64 = atoms.iter().map(|(_, weight)| weight).sum();
    atoms.iter().filter(|&&(at, _)| at <= time).map(|(_, weight)| weight).sum::<f64>() / all
}

#[test]
fn it_agrees_with_the_event_tier() {
    for loss in ["2 %", "5 %"] {
        let model = calibrated(loss);
        let (atoms, done) = exact(&model, 7);
        let times = events(&model, EVENTS);
        for hundredth in 1..100 {
            let time = times[(EVENTS * hundredth / 100) as usize];
            let expected = times.partition_point(|&at| at <= time) as f64 / EVENTS as f64;
            let found = share(&atoms, time);
            // Four and a half standard errors, of a hundred comparisons, of both tiers.
            let error = 4.5 * (expected * (1.0 - expected) / 12_000.0).sqrt();
            assert!(
                (found - expected).abs() < error + done.residual,
                "{loss}: {found} of {expected} by {time} ns"
            );
        }
        // The mean of what takes at most five seconds, later ones counted as so long.
        let most = 5_000_000_000_u64;
        let capped = |time: u64| time.min(most) as f64;
        let mean = times.iter().map(|&time| capped(time)).sum::<f64>() / EVENTS as f64;
        let square = times.iter().map(|&time| (capped(time) - mean).powi(2)).sum::<f64>();
        let error = (square / (EVENTS as f64).powi(2)).sqrt();
        let all: f64 = atoms.iter().map(|(_, weight)| weight).sum();
        let found = atoms.iter().map(|&(time, weight)| capped(time) * weight).sum::<f64>() / all;
        assert!(
            (found - mean).abs() < 4.5 * error + done.residual * most as f64,
            "{loss}: mean {found} of {mean}, {error}"
        );
    }
}

#[test]
fn the_residual_is_what_the_weights_lack() {
    for (device, settings) in [
        ("constant", common::REFERENCE),
        ("constant", &common::REFERENCE.replace("rtt =", "rate = \"250 kbit/s\"\nrtt =")),
        (common::CALIBRATED_DEVICE, common::CALIBRATED),
    ] {
        let (atoms, done) = exact(&model(device, settings), 3);
        let all: f64 = atoms.iter().map(|(_, weight)| weight).sum();
        assert!((1.0 - all - done.residual).abs() < 1e-9, "{all} {done:?}");
        assert!(done.residual <= 1e-3, "{done:?}");
        // More than the first patterns have, which are taken whatever is asked.
        assert!(done.patterns > 10 && done.residual > 0.0, "{done:?}");
        assert!(atoms.iter().all(|(_, weight)| *weight > 0.0));
    }
}

/// All patterns together have the probability one, whatever number of packets each takes: with no
/// residual left to hide in, weights counted twice would show.
#[test]
fn weights_are_probabilities() {
    let accuracy =
        Accuracy { residual: 0.0, lossless_trials: 1.0, lossy_trials: 50.0, most_patterns: 9_000 };
    for (device, settings) in [
        ("constant", common::REFERENCE.to_owned()),
        (common::CALIBRATED_DEVICE, common::CALIBRATED.to_owned()),
        (common::CALIBRATED_DEVICE, common::CALIBRATED.replace("60 ms", "1 ms")),
        (
            common::CALIBRATED_DEVICE,
            common::CALIBRATED.replace("rtt =", "rate = \"1 Mbit/s\"\nrtt ="),
        ),
    ] {
        let model = model(device, &settings.replace("2 %", "1 %"));
        let mut all = 0.0;
        let keep = |atom: Atom, _: &Outcome| all += atom.weight;
        Simulator::new().enumerate(&model, 5, accuracy, &mut || true, keep).unwrap();
        assert!((all - 1.0_f64).abs() < 5e-4, "{settings} {all}");
    }
}

/// A tenth of the noise that as many trials of the event tier have in P99, as its own distribution
/// says: the time by which a standard error of the share changes it.
#[test]
fn noise_in_the_tail() {
    let model = calibrated("2 %");
    let (atoms, _) = exact(&model, 1);
    let error = (0.99 * 0.01 / EVENTS as f64).sqrt();
    let of_events = (quantile(&atoms, 0.99 + error) - quantile(&atoms, 0.99 - error)) as f64 / 2.0;
    let found: Vec<f64> =
        (0..12).map(|seed| quantile(&exact(&model, seed).0, 0.99) as f64).collect();
    let mean = found.iter().sum::<f64>() / 12.0;
    let deviation = (found.iter().map(|at| (at - mean).powi(2)).sum::<f64>() / 11.0).sqrt();
    assert!(deviation < of_events / 10.0, "{deviation} ns beside {of_events} ns");
}

#[test]
fn it_ends_when_it_is_told_to() {
    let (mut looks, mut atoms) = (0, 0);
    let mut go_on = || {
        looks += 1;
        looks < 3
    };
    let keep = |_: Atom, _: &Outcome| atoms += 1;
    let model = calibrated("2 %");
    let done = Simulator::new().enumerate(&model, 1, Accuracy::default(), &mut go_on, keep);
    assert_eq!((done, atoms), (None, 512));
}

/// The estimate is by the packets of a trial without loss, and that of the enumeration itself.
#[test]
fn patterns_that_do_not_suffice_are_known_before() {
    let accuracy = Accuracy { most_patterns: 200, ..Accuracy::default() };
    for (loss, suffice) in [("1 %", true), ("5 %", false), ("20 %", false)] {
        let model = calibrated(loss);
        let expected = Simulator::new().few_patterns_suffice(&model, accuracy);
        let keep = |_: Atom, _: &Outcome| {};
        let done = Simulator::new().enumerate(&model, 1, accuracy, &mut || true, keep).unwrap();
        assert_eq!(expected.is_ok(), suffice, "{loss} {expected:?}");
        if let Err(expected) = expected {
            // What is sent again comes on top.
            let found = done.residual;
            assert!(found > 0.5 * expected.residual, "{loss} {found} {expected:?}");
        }
        assert_eq!(done.residual <= 2.0 * accuracy.residual, suffice, "{loss} {done:?}");
    }
}

/// A simulator that has run another model before estimates as a new one does: trials of constant
/// costs that are known without being run say how many packets they took themselves.
#[test]
fn estimate_does_not_depend_on_what_ran_before() {
    let accuracy = Accuracy { most_patterns: 50, ..Accuracy::default() };
    let larger = "[pattern]\nkind = \"request\"\nresponse_body = \"64 kB\"\n";
    let larger = model(common::CALIBRATED_DEVICE, &format!("{}{larger}", common::CALIBRATED));
    for (device, settings) in
        [("constant", common::REFERENCE), (common::CALIBRATED_DEVICE, common::CALIBRATED)]
    {
        let estimate = |simulator: &mut Simulator| {
            simulator.few_patterns_suffice(&model(device, settings), accuracy).unwrap_err()
        };
        let expected = estimate(&mut Simulator::new());
        let mut simulator = Simulator::new();
        let mut outcome = Outcome::default();
        (0..200).for_each(|seed| simulator.run(&larger, seed, &mut outcome));
        assert_eq!(estimate(&mut simulator), expected, "{device}");
        // As many packets as if every trial were run, but for those still on their way at its end.
        let run = estimate(&mut Simulator::without_memory());
        assert!((expected.residual / run.residual - 1.0).abs() < 0.05, "{expected:?} {run:?}");
    }
}

#[test]
fn more_losses_than_not_are_too_many_patterns() {
    for loss in ["51 %", "99 %"] {
        let expected =
            Simulator::new().few_patterns_suffice(&calibrated(loss), Accuracy::default());
        assert_eq!(expected.unwrap_err().residual, 1.0, "{loss}");
    }
}

#[test]
fn what_does_not_qualify() {
    let settings = common::CALIBRATED;
    for other in [
        settings.replace("rtt =", "jitter = [\"0 ms\", \"1 ms\"]\nrtt ="),
        settings.replace(
            "\"2 %\"",
            "{ good_to_bad = \"2 %\", bad_to_good = \"30 %\", loss_good = \"0 %\", \
             loss_bad = \"60 %\" }",
        ),
        format!("{settings}[pattern]\nkind = \"request\"\nconcurrent = 2\n"),
    ] {
        let model = model(common::CALIBRATED_DEVICE, &other);
        let keep = |_: Atom, _: &Outcome| {};
        assert_eq!(
            Simulator::new().enumerate(&model, 1, Accuracy::default(), &mut || true, keep),
            None
        );
    }
}
