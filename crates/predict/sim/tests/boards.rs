// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device of which some figures are assumed: a trial is of one board, whatever it computes.

mod common;

use std::path::Path;

use warifu_model::{Case, Catalog, ProfileKind, Study};
use warifu_sim::{Boards, CaseModel, Outcome, Simulator, trial_seed};

const TRIALS: u64 = 400;

/// The shipped board, as `change` makes it, with the shipped server and recipes.
fn catalog(device: &str, change: impl Fn(&str) -> String) -> Catalog {
    let mut catalog = common::catalog("1 ms");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../profiles");
    let mut add = |kind: ProfileKind, name: &str, change: &dyn Fn(&str) -> String| {
        let path = root.join(kind.folder()).join(name).with_extension("toml");
        let text = std::fs::read_to_string(path).expect("a readable profile");
        catalog.add(kind, name, &change(&text), name).expect("a valid profile");
    };
    let same = |text: &str| text.to_owned();
    add(ProfileKind::Recipe, "wolfssl-5", &same);
    add(ProfileKind::Recipe, "openssl-3", &same);
    add(ProfileKind::Device, "xeon-2-5-ghz-vm", &same);
    add(ProfileKind::Device, device, &change);
    catalog
}

fn case(device: &str, settings: &str, catalog: &Catalog) -> Case {
    case_over("1 ms", device, settings, catalog)
}

fn case_over(rtt: &str, device: &str, settings: &str, catalog: &Catalog) -> Case {
    let text = format!(
        "name = \"test\"\nseed = 1\ntrials = 1\ndevice = \"{device}\"\n\
         server = \"xeon-2-5-ghz-vm\"\nlink.profile = \"loopback\"\n\
         link.rtt = \"{rtt}\"\n[stack]\nprotocol = \"https\"\n\
         tls = \"1.3\"\nauthentication = \"server\"\n{settings}"
    );
    let study = Study::parse(&text, "test.toml", catalog).unwrap_or_else(|error| panic!("{error}"));
    study.cases.into_iter().next().expect("a study has a case")
}

/// Until the first response, ns, in ascending order.
fn times(device: &str, settings: &str, catalog: &Catalog) -> Vec<u64> {
    let case = case(device, settings, catalog);
    let model = CaseModel::compile(&case, catalog).unwrap();
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let mut times: Vec<u64> = (0..TRIALS)
        .map(|trial| {
            simulator.run(&model, trial_seed(1, &case.id(), trial), &mut outcome);
            outcome.connections[0].marks[3]
        })
        .collect();
    times.sort_unstable();
    times
}

/// Each band as one number, its middle: of 11 quantiles the sixth.
fn in_the_middle(text: &str) -> String {
    let line = |line: &str| {
        let Some((key, rest)) = line.split_once(" = { quantiles = \"") else {
            return line.to_owned();
        };
        let quantiles = rest.split_once('"').map_or("", |(quantiles, _)| quantiles);
        let middle = quantiles.split(' ').nth(5).expect("11 quantiles");
        format!("{key} = \"{middle} ns\"")
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// A message of 100 kB is sealed packet by packet, each by the same board: the median is that of
/// the estimate, however wide the band, and its ends are as far off as the board's.
#[test]
fn median_is_that_of_the_estimates() {
    for (device, settings, wide) in [
        ("stm32g071", "[pattern]\nrequest_body = \"100 kB\"\n", true),
        ("stm32g071", "", false),
        ("nrf52840", "cipher_suite = \"TLS_AES_256_GCM_SHA384\"\n", true),
    ] {
        let banded = times(device, settings, &catalog(device, str::to_owned));
        let constant = times(device, settings, &catalog(device, in_the_middle));
        let at = |times: &[u64], share: f64| times[(share * TRIALS as f64) as usize] as f64;
        let ratio = at(&banded, 0.5) / at(&constant, 0.5);
        // A median of 400 lies within 6 percentiles of its own (binomial, 98 %).
        assert!((0.94..1.15).contains(&ratio), "{device} {settings}: {ratio}");
        let spread = at(&banded, 0.95) / at(&banded, 0.05);
        assert_eq!(spread > 1.5, wide, "{device} {settings}: {spread}");
        assert!(at(&constant, 0.95) < 1.02 * at(&constant, 0.05));
    }
}

/// Until the first response on each of so many boards, ns, with the luck of one seed.
fn on_boards(rtt: &str, device: &str, settings: &str, catalog: &Catalog) -> Vec<u64> {
    let count = 200;
    let case = case_over(rtt, device, settings, catalog);
    let model = CaseModel::compile(&case, catalog).unwrap();
    let boards = Boards::of(&model, count).expect("a device whose figures have bands");
    assert_eq!((boards.len(), boards.is_empty()), (count, false));
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let mut on = |number| {
        simulator.run_on(&model, (&boards, number), 7, &mut outcome);
        outcome.connections[0].marks[3]
    };
    (0..count).map(&mut on).collect()
}

/// The boards of two cases are the same ones: what is the same in both cancels, however wide its
/// band is.
#[test]
fn boards_are_those_of_other_cases() {
    let spread = |times: &[i64]| times.iter().max().unwrap() - times.iter().min().unwrap();
    let of = |rtt: &str, device: &str, settings: &str| -> Vec<i64> {
        let times = on_boards(rtt, device, settings, &catalog(device, str::to_owned));
        times.into_iter().map(|ns| ns as i64).collect()
    };
    let less = |ours: &[i64], theirs: &[i64]| -> Vec<i64> {
        ours.iter().zip(theirs).map(|(one, other)| one - other).collect()
    };
    // A longer round trip is so much longer on every board, but for a timer's tick.
    let suite = "cipher_suite = \"TLS_AES_256_GCM_SHA384\"\n";
    let [near, far] = ["1 ms", "60 ms"].map(|rtt| of(rtt, "nrf52840", suite));
    assert!(spread(&near) > 500_000_000, "{}", spread(&near));
    assert!(spread(&less(&far, &near)) < 10_000_000, "{}", spread(&less(&far, &near)));
    // Sealing 100 kB instead of 50 takes as much of the same board's band again.
    let [here, half] = ["100 kB", "50 kB"].map(|body| {
        let settings = format!("[pattern]\nrequest_body = \"{body}\"\n");
        of("1 ms", "stm32g071", &settings)
    });
    let ratio = spread(&less(&here, &half)) as f64 / spread(&half) as f64;
    assert!((0.8..1.2).contains(&ratio), "{ratio}");
}

/// They are as far apart as trials of boards that are drawn.
#[test]
fn boards_are_spread_as_trials_are() {
    let catalog = catalog("stm32g071", str::to_owned);
    let settings = "[pattern]\nrequest_body = \"100 kB\"\n";
    let mut boards = on_boards("1 ms", "stm32g071", settings, &catalog);
    boards.sort_unstable();
    let trials = times("stm32g071", settings, &catalog);
    for place in [20, 50, 100, 150, 180] {
        let share = place as f64 / boards.len() as f64;
        let below = trials.iter().filter(|&&time| time < boards[place]).count();
        // A quantile of 400 trials lies within 6 percentiles of its own (binomial, 98 %).
        let off = below as f64 / TRIALS as f64 - share;
        assert!(off.abs() < 0.06, "{share}: {off}");
    }
}

/// Nothing is drawn for a device that was measured.
#[test]
fn boards_of_constant_figures_are_one() {
    let catalog = catalog("nrf52840", str::to_owned);
    let model = CaseModel::compile(&case("xeon-2-5-ghz-vm", "", &catalog), &catalog).unwrap();
    assert!(!model.has_bands());
    assert!(Boards::of(&model, 200).is_none());
}

/// One board at both ends has the same luck at both.
#[test]
fn band_of_a_board_is_one_for_all_its_uses() {
    let mut catalog = common::catalog("1 ms");
    let mut text = String::from(
        "name = \"board\"\ndescription = \"d\"\nsource = \"a test\"\nkind = \"measured\"\n",
    );
    for operation in warifu_model::Operation::all() {
        let name = operation.to_string();
        let hello = name.ends_with(".ClientHello");
        let time = if hello { "{ quantiles = [1, 101], unit = \"ms\" }" } else { "\"0 ms\"" };
        let when = common::whatever(operation);
        text += &format!("[[operation]]\nname = \"{name}\"\nwarm = {time}\n{when}");
        text += if hello { "kind = \"assumed\"\n" } else { "" };
    }
    catalog.add(ProfileKind::Device, "board", &text, "board").unwrap();
    let settings = "[link]\nprofile = \"loopback\"\n[stack]\nprotocol = \"https\"\n\
                    tls = \"1.3\"\nauthentication = \"server\"\n[pattern]\nconcurrent = 2\n";
    let text = format!(
        "name = \"t\"\nseed = 1\ntrials = 1\ndevice = \"board\"\nserver = \"board\"\n{settings}"
    );
    let study = Study::parse(&text, "t.toml", &catalog).unwrap();
    let model = CaseModel::compile(&study.cases[0], &catalog).unwrap();
    let (mut simulator, mut outcome) = (Simulator::new(), Outcome::default());
    let mut seen = Vec::new();
    for seed in 0..50 {
        simulator.run(&model, seed, &mut outcome);
        let stages = outcome.connections.iter().map(|connection| connection.stages);
        // What the device takes for its ClientHello is the same for both of its connections.
        let own: Vec<u64> =
            stages.map(|of| of[warifu_model::Stage::ClientCompute as usize]).collect();
        assert_eq!(own[0], own[1]);
        assert!((1_000_000..=101_000_000).contains(&own[0]), "{own:?}");
        seen.push(own[0]);
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 45 && seen[seen.len() - 1] - seen[0] > 80_000_000, "{seen:?}");
}
