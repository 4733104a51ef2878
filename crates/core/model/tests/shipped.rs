// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shipped profiles, studies and templates: readable, and true to what they cite.

mod common;

use warifu_model::{
    Case, KeyStoreCall, Kind, Nanos, Operation, ProfileKind, Study, inputs, inputs_where,
};

fn study(text: &str) -> Study {
    Study::parse(text, "test.toml", common::catalog()).unwrap_or_else(|error| panic!("{error}"))
}

fn gr_peach(more: &str) -> Case {
    let text = format!(
        "name = \"t\"\ndevice = \"gr-peach\"\n[stack]\nauthentication = \"server\"\n\
         certificate = \"rsa-2048\"\n{more}"
    );
    study(&text).cases.remove(0)
}

#[test]
fn shipped_studies_and_templates() {
    let catalog = common::catalog();
    let mut count = 0;
    for folder in ["studies", "python/warifu/templates", "fuzz/seeds/study_parse"] {
        for (stem, text, file) in common::toml_files(folder) {
            let study =
                Study::parse(&text, &file, catalog).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(study.name, stem, "{file}");
            for case in &study.cases {
                assert!(!inputs(case, catalog).unwrap().is_empty());
            }
            count += 1;
        }
    }
    assert!(count >= 7);
}

#[test]
fn cases_of_the_first_loop() {
    let files = common::toml_files("studies");
    let (_, text, _) = files.iter().find(|(stem, ..)| stem == "first-loop").unwrap();
    let study = study(text);
    assert_eq!((study.cases.len(), study.trials, study.predict_trials), (24, 200, 20_000));
    assert_eq!(study.label(0), "tls 1.2, session full, rtt 0 ms, loss 0 %");
    assert_eq!(study.label(23), "tls 1.3, session resumed, rtt 150 ms, loss 2 %");
    let ids: std::collections::BTreeSet<_> = study.cases.iter().map(Case::id).collect();
    assert_eq!(ids.len(), 24);
}

/// papers/2 Table 2, `[tls13.message]` of the reference figures: columns AES-128-GCM with
/// secp256r1 and Curve25519, then ChaCha20-Poly1305 with the same; ms.
const TABLE_2: [(&str, [f64; 4]); 7] = [
    ("client.send.ClientHello", [172.69, 23.15, 172.50, 22.77]),
    ("client.receive.ServerHello", [176.55, 25.81, 176.15, 25.05]),
    ("client.receive.EncryptedExtensions", [1.55, 1.14, 1.33, 1.33]),
    ("client.receive.Certificate", [69.40, 67.81, 64.86, 62.82]),
    ("client.receive.CertificateVerify", [30.16, 31.10, 29.60, 31.27]),
    ("client.receive.Finished", [5.06, 3.66, 5.04, 3.65]),
    ("client.send.Finished", [2.02, 2.00, 1.97, 1.92]),
];
const TABLE_2_TOTAL: [f64; 4] = [457.43, 154.67, 451.45, 148.81];

#[test]
fn table_2_from_gr_peach() {
    let catalog = common::catalog();
    let profile = catalog.device("gr-peach").unwrap();
    let columns = [
        ("AES_128_GCM", "P-256"),
        ("AES_128_GCM", "Curve25519"),
        ("CHACHA20_POLY1305", "P-256"),
        ("CHACHA20_POLY1305", "Curve25519"),
    ];
    for (column, (aead, group)) in columns.into_iter().enumerate() {
        let case = gr_peach(&format!("aead = \"{aead}\"\ngroup = \"{group}\""));
        let mut total = 0.0;
        for (name, row) in TABLE_2 {
            let cost = profile.cost(name.parse().unwrap(), &case.stack, 500).unwrap();
            assert_eq!(cost.warm.mean().as_millis_f64(), row[column], "{name}");
            assert_eq!(cost.kind, Kind::Published);
            assert!(cost.source.unwrap().contains("Table 2"));
            total += row[column];
        }
        // The printed totals are sums of figures before rounding.
        assert!((total - TABLE_2_TOTAL[column]).abs() < 0.02, "{total}");
    }
}

/// papers/2 section 5.2: PSK, prepared key share, ChaCha20-Poly1305, Curve25519: 31.95 ms.
#[test]
fn psk_estimate_from_gr_peach() {
    let catalog = common::catalog();
    let profile = catalog.device("gr-peach").unwrap();
    let case = gr_peach(
        "aead = \"CHACHA20_POLY1305\"\ngroup = \"x25519\"\nsession = \"psk_dhe_ke\"\n\
         key_share = \"prepared\"",
    );
    let messages = [0, 1, 2, 5, 6].map(|index| TABLE_2[index].0.parse::<Operation>().unwrap());
    let total: f64 = messages
        .iter()
        .map(|&op| profile.cost(op, &case.stack, 0).unwrap().warm.mean().as_millis_f64())
        .sum();
    assert!((total - 31.95).abs() < 1e-9, "{total}");
}

#[test]
fn operations_that_gr_peach_lacks() {
    let catalog = common::catalog();
    let profile = catalog.device("gr-peach").unwrap();
    let line = |name: &str, more: &str| {
        let stack = gr_peach(more).stack;
        profile.cost(name.parse().unwrap(), &stack, 0).unwrap_err().to_string()
    };
    let message = line("client.send.CertificateVerify", "");
    assert!(message.starts_with("profiles/devices/gr-peach.toml: client.send.CertificateVerify "));
    assert!(
        message.contains("papers/2 measured TLS 1.3 as a client, without a client certificate")
    );
    assert!(message.ends_with("use stack.authentication = \"server\", or calibrate the device"));
    let message = line("client.receive.Certificate", "tls = \"1.2\"");
    assert!(message.ends_with("use stack.tls = \"1.3\", or calibrate the device"), "{message}");
    let message = line("client.receive.ServerHello", "session = \"psk_ke\"");
    assert!(message.contains("use stack.session = \"full\""), "{message}");
    let message = line("client.receive.Certificate", "chain_length = 2");
    assert!(message.contains("use stack.chain_length = 1"), "{message}");
}

/// The `index`-th of a sequence that fills the unit interval evenly, a different one for each
/// `axis` (Richtmyer: multiples of square roots of primes). Draws by it are far less noisy than
/// random ones, and always the same.
fn even(index: usize, axis: usize) -> f64 {
    const PRIMES: [f64; 10] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0];
    ((index + 1) as f64 * PRIMES[axis].sqrt()).fract()
}

/// papers/1 Table 3, ECDSA P-256, n = 100: mean, sd, P50, P90, P99 in ms, fraction over 1 s.
const SIGN_ONLY: [f64; 6] = [476.5, 9.2, 475.1, 483.5, 494.8, 0.0];
const TOTAL: [f64; 6] = [677.7, 177.2, 642.2, 671.9, 1739.4, 0.04];

#[test]
fn table_3_from_the_iot_safe_card() {
    let catalog = common::catalog();
    let card = catalog.key_store("iot-safe-sakomoto").unwrap();
    let check = |calls: &[KeyStoreCall], published: [f64; 6]| {
        const TRIALS: usize = 100_000;
        let laws: Vec<_> = calls.iter().map(|&call| card.call(call).unwrap()).collect();
        let exact: f64 = laws.iter().map(|law| law.mean_ns() / 1e6).sum();
        assert!((exact - published[0]).abs() < 0.1, "{exact}");
        let trial = |index| {
            let draw = |(k, law): (usize, &&warifu_model::Distribution)| {
                law.sample(even(index, 2 * k), even(index, 2 * k + 1)).as_millis_f64()
            };
            laws.iter().enumerate().map(draw).sum()
        };
        let mut sums: Vec<f64> = (0..TRIALS).map(trial).collect();
        sums.sort_by(f64::total_cmp);
        let n = TRIALS as f64;
        let mean = sums.iter().sum::<f64>() / n;
        let sd = (sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let quantile = |p: f64| sums[(p * n) as usize];
        let over = sums.iter().filter(|&&x| x > 1000.0).count() as f64 / n;
        let got = [mean, sd, quantile(0.5), quantile(0.9), quantile(0.99), over];
        // Below what 100 trials can tell: the mean of `total` has a standard error of 18 ms.
        let tolerance = [0.2, 0.005 * published[1].max(20.0), 0.2, 0.2, 10.0, 0.0005];
        for (index, name) in ["mean", "sd", "P50", "P90", "P99", "over 1 s"].iter().enumerate() {
            let gap = (got[index] - published[index]).abs();
            assert!(gap <= tolerance[index], "{name}: {} for {}", got[index], published[index]);
        }
    };
    check(&[KeyStoreCall::SignInit, KeyStoreCall::Sign], SIGN_ONLY);
    check(&KeyStoreCall::ALL, TOTAL);
}

/// `sign_only` never exceeded 1 s, so no draw may.
#[test]
fn stall_before_the_signature() {
    let catalog = common::catalog();
    let card = catalog.key_store("iot-safe-sakomoto").unwrap();
    let longest = card.call(KeyStoreCall::SignInit).unwrap().max().0
        + card.call(KeyStoreCall::Sign).unwrap().max().0;
    assert!(longest < Nanos::from_secs(1).0);
}

#[test]
fn syn_timers_of_two_kernels() {
    let catalog = common::catalog();
    let new = catalog.tcp("linux-6.18").unwrap();
    let old = catalog.tcp("linux-6.1").unwrap();
    assert_eq!((new.tcp_syn_linear_timeouts, old.tcp_syn_linear_timeouts), (4, 0));
    assert_eq!(new.kernel, Some("6.18".parse().unwrap()));
    assert_eq!(old.kernel, Some("6.1".parse().unwrap()));
    assert_eq!(new.jiffy(), Nanos::from_millis(4));
    assert_eq!(new.tcp_rto_min, Nanos::from_millis(200));
    assert!(new.figures().iter().all(|figure| figure.source.contains("6.18")));
}

/// Sui et al., MobiSys 2016: the hop's round trip has median 3 ms, P90 20 ms, P99 250 ms.
#[test]
fn published_quantiles_of_wifi() {
    let catalog = common::catalog();
    let link = &catalog.link("wifi").unwrap().link;
    assert_eq!(link.jitter.len(), 101);
    for (index, hop_ms) in [(50, 3.0), (90, 20.0), (99, 250.0)] {
        let hop = link.rtt.as_millis_f64() + 2.0 * link.jitter[index].as_millis_f64();
        assert!((hop - hop_ms).abs() <= 0.01 * hop_ms, "{hop}");
    }
}

#[test]
fn inputs_of_a_case() {
    let catalog = common::catalog();
    let case = study(
        "name = \"t\"\nkey_store = \"iot-safe-sakomoto\"\n[link]\nprofile = \"lte-m\"\n\
         loss = \"3 %\"",
    )
    .cases
    .remove(0);
    let all = inputs(&case, catalog).unwrap();
    let find = |name: &str| all.iter().find(|input| input.name() == name).unwrap();
    let rate = find("lte-m rate_up");
    assert_eq!((rate.kind, rate.value.text.as_str()), (Kind::Published, "1 Mbit/s"));
    let loss = find("link loss");
    assert_eq!((loss.value.text.as_str(), loss.source.as_str()), ("3 %", "chosen by the study"));
    assert_eq!(loss.kind, Kind::Emulated);
    assert_eq!(find("iot-safe-sakomoto C_Sign").kind, Kind::Published);
    assert_eq!(find("iot-safe-sakomoto C_Login").kind, Kind::Assumed);
    assert_eq!(find("this-host client.sign").kind, Kind::Measured);
    assert_eq!(find("linux-6.18 hz").value.text, "250/s");
    let rtt = find("lte-m rtt");
    assert_eq!(
        (rtt.of, rtt.owner.as_str(), rtt.key.as_str()),
        (warifu_model::FigureOf::Link, "lte-m", "rtt")
    );
    assert!(all.iter().all(|input| input.source.is_empty() <= (input.kind == Kind::Assumed)));
    let few = inputs_where(&case, catalog, |_| false, |call| call == KeyStoreCall::Sign).unwrap();
    assert!(
        few.iter()
            .all(|input| !input.name().contains("client.") && !input.name().contains("Login"))
    );
    assert!(few.iter().any(|input| input.name() == "iot-safe-sakomoto C_Sign"));
}

#[test]
fn folder_of_each_kind() {
    for kind in ProfileKind::ALL {
        assert_eq!(ProfileKind::from_name(kind.folder()), Some(kind));
        assert_eq!(ProfileKind::from_name(kind.name()), Some(kind));
        assert!(!common::catalog().names(kind).is_empty());
    }
}

/// The rows of SWCU185F's table 13-17, at its 200 MHz, lie within what the profile makes of them.
#[test]
fn accelerator_gives_its_table_back() {
    let engine = common::catalog().accelerator("ti-cc26x2").unwrap().clone();
    let clock = 48.0 / 200.0;
    for (blocks, mbit_s) in [(1, 63.0), (20, 291.0), (100, 336.0)] {
        let call = engine.call(warifu_model::DdsAead::Aes256Gcm, 16 * blocks).unwrap();
        let table_ns = f64::from(blocks) * 128.0 / mbit_s * 1e3;
        let [low, high] = [call.low_ns * clock, call.high_ns * clock];
        // The table has whole Mbit/s.
        let slack = table_ns / mbit_s;
        assert!(
            (low - slack..high + slack).contains(&table_ns),
            "{blocks}: {low} {table_ns} {high}"
        );
    }
}

/// The paper on offloading: 1 - 22.53/176 of the cryptography's time (section 4).
#[test]
fn accelerator_of_the_paper() {
    let core = common::catalog().accelerator("fpga-387-slices").unwrap();
    for aead in core.aeads() {
        let call = core.call(aead, 1_000_000).unwrap();
        assert_eq!(call.low_ns, call.high_ns);
        let software_ns = 1e9 / 22.53;
        assert_eq!(format!("{:.1}", 100.0 * (1.0 - call.low_ns / software_ns)), "87.2");
    }
    let behind_bus = common::catalog().accelerator("fpga-387-slices-axi").unwrap();
    let aead = warifu_model::DdsAead::Aes256Gcm;
    assert!(behind_bus.call(aead, 16).unwrap().low_ns >= 10_000.0);
    assert!(behind_bus.inputs(aead).iter().any(|input| input.kind == Kind::Assumed));
}
