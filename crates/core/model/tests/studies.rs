// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Studies: what is accepted means what it says, and every mistake is one clear line.

mod common;

use proptest::prelude::*;
use warifu_model::{
    Aead, Authentication, BitsPerSecond, Case, CipherSuite, Group, KeyShare, Loss, Metric, Nanos,
    Operator, Probability, Session, Statistic, Study, Tls, TlsVersion, Value, case_columns,
};

/// The TLS layer of a case that has one.
fn tls(case: &Case) -> &Tls {
    case.stack.tls().expect("a stack with TLS")
}

fn parse(text: &str) -> Result<Study, String> {
    Study::parse(text, "meter.toml", common::catalog()).map_err(|error| error.to_string())
}

fn study(text: &str) -> Study {
    parse(text).unwrap_or_else(|message| panic!("{message}"))
}

fn flags(text: &str, flags: &[(&str, &str)]) -> Result<Study, String> {
    let flags: Vec<_> = flags.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    Study::parse_with(text, "meter.toml", &flags, common::catalog())
        .map_err(|error| error.to_string())
}

/// The mistake of a study named `m` with `text` below.
fn mistake(text: &str) -> String {
    let message = match parse(&format!("name = \"m\"\n{text}")) {
        Err(message) => message,
        Ok(_) => panic!("accepted: {text}"),
    };
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn defaults_of_a_short_study() {
    let study = study("name = \"m\"");
    assert_eq!((study.seed, study.trials, study.predict_trials), (1, 200, 20_000));
    assert_eq!(study.cases.len(), 1);
    assert_eq!(study.label(0), "");
    let case = &study.cases[0];
    assert_eq!(
        (case.device.profile.as_str(), case.server.profile.as_str()),
        ("this-host", "this-host")
    );
    assert_eq!(case.key_store.profile, "software");
    assert_eq!(tls(case).version, TlsVersion::Tls13);
    assert_eq!(tls(case).session, Session::Full);
    assert_eq!(tls(case).authentication, Authentication::Mutual);
    assert_eq!(tls(case).cipher_suite, CipherSuite::TlsAes128GcmSha256);
    assert_eq!(tls(case).server_certificate_bytes, [486]);
    assert_eq!(tls(case).client_certificate_bytes, [486]);
    assert_eq!((case.link.rtt, case.link.loss), (Nanos::ZERO, Loss::None));
}

#[test]
fn units_and_shorthands() {
    let study = study(
        "name = \"m\"\ntrials = 50000\ndevice = \"this-host\"\n\
         stack = \"https/server/tls1.2/resumed/x25519\"\n\
         [link]\nprofile = \"lte-m\"\nrtt = \"1.5 s\"\nloss = \"2 %\"\nrate = \"250 kbit/s\"\n\
         jitter = [\"0 ms\", \"1 ms\", \"8 ms\"]\n[pattern]\nresponse_body = \"4 KiB\"\n\
         [key_store]\nprofile = \"iot-safe-sakomoto\"\nsession_open = false\n",
    );
    assert_eq!(study.predict_trials, 50_000);
    let case = &study.cases[0];
    assert_eq!(case.link.rtt, Nanos::from_millis(1500));
    assert_eq!(case.link.rate_up, Some(BitsPerSecond(250_000)));
    assert_eq!(case.link.rate_down, Some(BitsPerSecond(250_000)));
    assert_eq!(case.link.jitter.len(), 3);
    assert_eq!(case.link.mtu, 1428);
    assert_eq!(case.link.loss, Loss::Independent { probability: Probability(0.02) });
    assert_eq!(tls(case).session, Session::Ticket);
    assert_eq!(tls(case).group, Group::X25519);
    assert!(tls(case).client_certificate_bytes.is_empty());
    assert_eq!(case.pattern.response_body, 4096);
    assert!(!case.key_store.session_open);
}

#[test]
fn resumed_session_and_aead_by_version() {
    let study = study(
        "name = \"m\"\n[stack]\nsession = \"resumed\"\naead = \"CHACHA20_POLY1305\"\n\
         certificate = \"rsa-2048\"\nchain_length = 2\n[vary]\n\
         \"stack.tls\" = [\"1.2\", \"1.3\"]\n",
    );
    let [old, new] = [tls(&study.cases[0]), tls(&study.cases[1])];
    assert_eq!((old.session, new.session), (Session::Ticket, Session::PskDheKe));
    assert_eq!(old.cipher_suite, CipherSuite::TlsEcdheRsaWithChacha20Poly1305Sha256);
    assert_eq!(new.cipher_suite, CipherSuite::TlsChacha20Poly1305Sha256);
    assert_eq!(new.server_certificate_bytes, [892, 851]);
}

#[test]
fn order_of_varied_cases() {
    let study = study(
        "name = \"m\"\n[vary]\nstack.tls = [\"1.2\", \"1.3\"]\n\
         \"link.rtt\" = [\"0 ms\", \"60 ms\", \"150 ms\"]\n\
         link.loss = [\"1 %\", { good_to_bad = \"1 %\", bad_to_good = \"30 %\", loss_good = \"0 \
         %\", loss_bad = \"50 %\" }]\n",
    );
    assert_eq!(study.cases.len(), 12);
    assert_eq!(study.label(0), "tls 1.2, rtt 0 ms, loss 1 %".to_string());
    assert_eq!(study.cases[0].link.rtt, Nanos::ZERO);
    assert_eq!(study.cases[2].link.rtt, Nanos::from_millis(60));
    assert_eq!(tls(&study.cases[11]).version, TlsVersion::Tls13);
    assert!(matches!(study.cases[11].link.loss, Loss::GilbertElliott { .. }));
    assert_eq!(study.vary[0], ("stack.tls".into(), vec!["1.2".into(), "1.3".into()]));
    assert_eq!(study.label(12), "");
}

#[test]
fn largest_number_of_cases() {
    let list = |count: u32, unit: &str| {
        let values: Vec<String> = (0..count).map(|k| format!("\"{}{unit}", k)).collect();
        format!("[{}]", values.join(", "))
    };
    let text = |rtts, losses| {
        format!(
            "name = \"m\"\n[vary]\n\"link.rtt\" = {}\n\"link.loss\" = {}\n",
            list(rtts, " ms\""),
            list(losses, " %\"")
        )
    };
    assert_eq!(study(&text(250, 40)).cases.len(), 10_000);
    let message = parse(&text(10_001, 100)).unwrap_err();
    let expected =
        "meter.toml: vary spans 10001 x 100 cases: expected at most 1000000; shorten a list";
    assert_eq!(message, expected);
}

/// Values that are each held against all others would take minutes here.
#[test]
fn long_lists_are_refused_in_linear_time() {
    let list = |count: u32| {
        let values: Vec<String> = (0..count).map(|k| format!("\"{k} ns\"")).collect();
        values.join(", ")
    };
    let text = format!("name = \"m\"\n[vary]\nlink.rtt = [{}, \"0 ns\"]\n", list(200_000));
    let message = parse(&text).unwrap_err();
    assert_eq!(message, "meter.toml: vary.link.rtt holds \"0 ns\" twice: keep one");
    let many = list(400_000);
    let text = format!("name = \"m\"\n[vary]\nlink.rtt = [{many}]\nlink.jitter = [{many}]\n");
    let message = parse(&text).unwrap_err();
    assert!(message.starts_with("meter.toml: vary spans 400000 x 400000 cases:"), "{message}");
}

#[test]
fn flag_that_replaces_a_list_too_long() {
    let values: Vec<String> = (0..2_000).map(|k| format!("\"{k} ms\"")).collect();
    let list = values.join(", ");
    let text = format!(
        "name = \"m\"\n[vary]\nlink.rtt = [{list}]\nserver.workers = [{}]\n",
        (1..=600).map(|k| k.to_string()).collect::<Vec<_>>().join(", ")
    );
    assert!(parse(&text).is_err());
    assert_eq!(flags(&text, &[("link.rtt", "60 ms")]).unwrap().cases.len(), 600);
}

#[test]
fn bounds_of_a_study() {
    let study = study(
        "name = \"m\"\n[require]\n\"https.establishment.p99\" = \"< 5 s\"\n\
         bytes.link.mean = \"<= 4 KiB\"\n",
    );
    let first = &study.require[0];
    assert_eq!(first.metric, Metric::HttpsEstablishment);
    assert_eq!(
        (first.statistic, first.operator, first.bound),
        (Statistic::P99, Operator::Less, 5e9)
    );
    assert_eq!(first.to_string(), "https.establishment.p99 < 5 s");
    assert_eq!(study.require[1].bound, 4096.0);
}

#[test]
fn flags_over_values_and_vary() {
    let text = "name = \"m\"\n[link]\nrate_up = \"1 Mbit/s\"\n[stack]\n\
                cipher_suite = \"TLS_AES_128_GCM_SHA256\"\n\
                [vary]\n\"link.rtt\" = [\"0 ms\", \"60 ms\"]\n\
                \"stack.session\" = [\"full\", \"resumed\"]\n";
    assert_eq!(study(text).cases.len(), 4);
    let set = [
        ("link.rtt", "7 ms"),
        ("link.rate", "2 Mbit/s"),
        ("stack", "https/tls1.2/server"),
        ("stack.aead", "AES_256_GCM"),
        ("trials", "5"),
        ("seed", "9"),
        ("name", "other"),
        ("pattern.concurrent", "3"),
        ("stack.nagle", "true"),
        ("link.jitter", "[\"0 ms\", \"2 ms\"]"),
        ("require.tcp.connect.p50", "< 1 s"),
    ];
    let changed = flags(text, &set).unwrap();
    assert_eq!((changed.cases.len(), changed.trials, changed.seed), (2, 5, 9));
    assert_eq!(changed.name, "other");
    let message = flags(text, &[("seed", "99999999999999999999")]).unwrap_err();
    assert!(message.contains("expected a number of at most 9223372036854775807"), "{message}");
    let case = &changed.cases[1];
    assert_eq!(case.link.rtt, Nanos::from_millis(7));
    assert_eq!(case.link.rate_up, Some(BitsPerSecond(2_000_000)));
    assert_eq!(tls(case).cipher_suite.aead(), Aead::Aes256Gcm);
    assert_eq!(tls(case).session, Session::Ticket);
    assert_eq!((case.pattern.concurrent, case.stack.tcp().unwrap().nagle), (3, true));
    assert_eq!(changed.require.len(), 1);
    assert_ne!(changed.text_hash, study(text).text_hash);
    let varied = flags(text, &[("vary.link.rtt", "[\"1 ms\", \"2 ms\", \"3 ms\"]")]).unwrap();
    assert_eq!(varied.cases.len(), 6);
}

/// As TOML, as a shell leaves it of that, and as it is typed.
#[test]
fn lists_on_the_command_line() {
    for (path, texts) in [
        ("stack.session", ["[\"full\", \"resumed\"]", "[full, resumed]", "full,resumed"]),
        ("stack.tls", ["[\"1.2\",\"1.3\"]", "[1.2,1.3]", "1.2, 1.3,"]),
        ("link.rtt", ["['60 ms', '800 ms']", "[60 ms, 800 ms]", "60 ms,800 ms"]),
        (
            "stack",
            [
                "[\"https/tls1.3\", \"coap/con\"]",
                "[https/tls1.3,coap/con]",
                "https/tls1.3,coap/con",
            ],
        ),
        ("pattern.concurrent", ["[1, 2]", "[ 1,2 ]", "1,2"]),
        (
            "link.jitter",
            [
                "[[\"0 ms\", \"2 ms\"], [\"0 ms\", \"3 ms\"]]",
                "[[0 ms, 2 ms], [0 ms, 3 ms]]",
                "[0 ms,2 ms],[0 ms,3 ms]",
            ],
        ),
    ] {
        let cases = texts.map(|text| {
            let study = flags("name = \"m\"", &[(&format!("vary.{path}"), text)]);
            study.unwrap_or_else(|error| panic!("{path} = {text}: {error}")).cases
        });
        assert_eq!(cases[0].len(), 2, "{path}");
        assert!(cases.iter().all(|these| *these == cases[0]), "{path}");
    }
    let one = flags("name = \"m\"", &[("link.jitter", "[0 ms, 2 ms]")]).unwrap();
    assert_eq!(one.cases[0].link.jitter, [Nanos::ZERO, Nanos::from_millis(2)]);
    for (text, part) in [
        ("", "is []: expected a list"),
        ("[full", "\"[full\": expected one of \"full\""),
        ("full,fll", "\"fll\": expected one of \"full\""),
        ("full,,resumed", "is \"\": expected one of"),
    ] {
        let message = flags("name = \"m\"", &[("vary.stack.session", text)]).unwrap_err();
        assert!(message.contains(part), "{text}: {message}");
        assert!(message.starts_with("command line: vary.stack.session is "), "{message}");
    }
}

#[test]
fn question_without_a_file() {
    let choices = [
        ("device", "this-host"),
        ("key_store", "iot-safe-sakomoto"),
        ("link", "lte-m"),
        ("stack", "https/tls1.3"),
    ]
    .map(|(path, value)| (path.to_string(), value.to_string()));
    let catalog = common::catalog();
    let study = Study::from_choices(&choices, catalog).unwrap();
    assert_eq!((study.name.as_str(), study.cases.len()), ("question", 1));
    assert_eq!(study.cases[0].link.profile, "lte-m");
    let wrong = [("link.loss".to_string(), "1.2".to_string())];
    let message = Study::from_choices(&wrong, catalog).unwrap_err().to_string();
    assert_eq!(message, "command line: link.loss is \"1.2\": expected a probability from 0 to 1");
}

#[test]
fn mistakes_of_one_value() {
    for (text, expected) in [
        ("[link]\nloss = 1.2", "meter.toml: link.loss is 1.2: expected a probability from 0 to 1"),
        (
            "[link]\nrtt = \"60 kbit/s\"",
            "meter.toml: link.rtt is \"60 kbit/s\": expected a duration such as \"60 ms\"",
        ),
        ("[link]\nrtt = 60", "meter.toml: link.rtt is 60: expected a duration such as \"60 ms\""),
        (
            "[link]\nrate = \"60 ms\"",
            "meter.toml: link.rate is \"60 ms\": expected a rate such as \"250 kbit/s\"",
        ),
        (
            "[pattern]\nresponse_body = \"4 KB\"",
            "meter.toml: pattern.response_body is \"4 KB\": expected B, kB (1000 B), KiB (1024 B)",
        ),
        ("[link]\nrt = \"60 ms\"", "meter.toml: link.rt is unknown; did you mean rtt?"),
        ("devcie = \"x\"", "meter.toml: devcie is unknown; did you mean device?"),
        ("[lnik]\nrtt = \"1 ms\"", "meter.toml: lnik is unknown; did you mean link?"),
        (
            "device = \"gr-peech\"",
            "meter.toml: device is \"gr-peech\": expected one of cortex-m3-mbedtls, esp32, ",
        ),
        (
            "link = \"lte\"",
            "meter.toml: link is \"lte\": expected one of ethernet, loopback, lte-m, nb-iot, \
             wifi; did you mean \"lte-m\"?",
        ),
        ("[stack]\ntls = \"1.4\"", "meter.toml: stack.tls is \"1.4\": expected \"1.2\" or \"1.3\""),
        ("[stack]\ntls = 1.3", "meter.toml: stack.tls is 1.3: expected \"1.2\" or \"1.3\""),
        (
            "stack = \"https/tls1.4\"",
            "meter.toml: stack is \"https/tls1.4\": \"tls1.4\" is not known in it; did you mean \
             \"tls1.2\"?",
        ),
        (
            "[stack]\nchain_length = 0",
            "meter.toml: stack.chain_length is 0: expected 1, 2 or 3 certificates",
        ),
        (
            "[stack]\nchain_length = 4",
            "meter.toml: stack.chain_length is 4: expected 1, 2 or 3 certificates",
        ),
        (
            "[stack]\ninitcwnd = 0",
            "meter.toml: stack.initcwnd is 0: expected a whole number from 1 to 255",
        ),
        (
            "[stack]\nserver_name = \"10.0.0.1\"",
            "meter.toml: stack.server_name is \"10.0.0.1\": expected a host name",
        ),
        (
            "[stack]\nkernel = \"linux-2.6\"",
            "meter.toml: stack.kernel is \"linux-2.6\": expected one of linux-6.1, linux-6.18",
        ),
        (
            "[stack]\ncipher_suite = \"TLS_AES_128_GCM_SHA265\"",
            "meter.toml: stack.cipher_suite is \"TLS_AES_128_GCM_SHA265\": expected one of",
        ),
        ("trials = 0", "meter.toml: trials is 0: expected a whole number from 1 to 1000000000"),
        ("seed = -1", "meter.toml: seed is -1: expected a whole number from 0"),
        ("stack = 3", "meter.toml: stack is 3: expected a text or a table"),
        ("require = 3", "meter.toml: require is 3: expected a table"),
        ("[pattern]\npath = \"here\"", "meter.toml: pattern.path is \"here\": expected a path"),
        (
            "[link]\njitter = [\"8 ms\", \"1 ms\"]",
            "meter.toml: link.jitter is [\"8 ms\", \"1 ms\"]: expected evenly spaced quantiles",
        ),
        (
            "[require]\n\"https.establishment.p99\" = \"5 s\"",
            "meter.toml: require.https.establishment.p99 is \"5 s\": expected a bound such as \"< \
             5 s\"",
        ),
        (
            "[require]\n\"https.etablishment.p99\" = \"< 5 s\"",
            "meter.toml: require.https.etablishment.p99 is not a metric; did you mean \
             https.establishment?",
        ),
    ] {
        let message = mistake(text);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn conflicting_choices() {
    for (stack, expected) in [
        (
            "cipher_suite = \"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\"",
            "meter.toml: stack.cipher_suite is \"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\": TLS \
             1.3 lacks it; \
             use \"TLS_AES_128_GCM_SHA256\", or stack.aead = \"AES_128_GCM\", which fits every \
             version",
        ),
        (
            "tls = \"1.2\"\ncipher_suite = \"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\"",
            "meter.toml: stack.cipher_suite is \"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\": a \
             certificate of type \
             ecdsa_secp256r1 cannot serve it",
        ),
        (
            "tls = \"1.2\"\nsession = \"0-rtt\"",
            "meter.toml: stack.session is \"0-rtt\" with nothing to resume: a TLS 1.2 connection \
             leaves a ticket",
        ),
        (
            "tls = \"1.2\"\nsession = \"psk_ke\"",
            "meter.toml: stack.session is \"psk_ke\" with nothing to resume",
        ),
        (
            "session = \"ticket\"",
            "meter.toml: stack.session is \"ticket\" with nothing to resume: a TLS 1.3 connection \
             leaves a PSK",
        ),
        (
            "session = \"psk_ke\"\nkey_share = \"prepared\"",
            "meter.toml: stack.key_share is \"prepared\": a PSK without (EC)DHE has no key share \
             to prepare; \
             use \"fresh\" or leave it out",
        ),
        (
            "tls = \"1.2\"\nkey_share = \"prepared\"",
            "meter.toml: stack.key_share is \"prepared\": a TLS 1.2 ClientHello has no key share",
        ),
        (
            "authentication = \"server\"\nclient_certificate_bytes = [474]",
            "meter.toml: stack.client_certificate_bytes is given, but the client shows no \
             certificate",
        ),
        (
            "chain_length = 2\nserver_certificate_bytes = [474]",
            "meter.toml: stack.server_certificate_bytes holds 1 sizes: expected 2, as \
             stack.chain_length says",
        ),
        (
            "aead = \"AES_128_GCM\"\ncipher_suite = \"TLS_AES_128_GCM_SHA256\"",
            "meter.toml: stack.cipher_suite sets the same as stack.aead: keep one",
        ),
    ] {
        let message = mistake(&format!("[stack]\n{stack}"));
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn mistakes_of_vary() {
    for (vary, expected) in [
        (
            "\"link.rtt\" = []",
            "meter.toml: vary.link.rtt is []: expected a list with at least one value",
        ),
        ("\"link.rtt\" = \"1 ms\"", "meter.toml: vary.link.rtt is \"1 ms\": expected a list"),
        (
            "\"link.rtt\" = [\"1 ms\", \"2\"]",
            "meter.toml: vary.link.rtt is \"2\": expected a duration",
        ),
        ("\"link.rt\" = [\"1 ms\"]", "meter.toml: vary.link.rt is unknown; did you mean rtt?"),
        (
            "colour = [\"red\"]",
            "meter.toml: vary.colour is unknown; expected a setting such as link.rtt",
        ),
        ("tls = [\"1.2\"]", "meter.toml: vary.tls is unknown; did you mean stack.tls?"),
        ("trials = [1, 2]", "meter.toml: vary.trials is unknown"),
        ("link = {}", "meter.toml: vary.link is a table: expected a list"),
        (
            "\"link.rtt\" = [\"1 s\", \"1000 ms\"]",
            "meter.toml: vary.link.rtt holds \"1000 ms\" twice: keep one",
        ),
        (
            "\"stack.session\" = [\"resumed\", \"psk_dhe_ke\"]",
            "meter.toml: vary makes the same case of stack.session = resumed and of stack.session \
             = psk_dhe_ke: keep one",
        ),
        (
            "\"stack.tls\" = [\"1.3\", \"1.2\"]\n\"stack.session\" = [\"full\", \"0-rtt\"]",
            "meter.toml: stack.session is \"0-rtt\" with nothing to resume",
        ),
        (
            "stack = [\"https/tls1.2\", \"https/tls1.3\"]\n\"stack.tls\" = [\"1.2\"]",
            "meter.toml: vary.stack.tls sets the same as vary.stack: keep one",
        ),
    ] {
        let message = mistake(&format!("[vary]\n{vary}"));
        assert!(message.starts_with(expected), "{message}");
    }
    let message = mistake("[link]\nrtt = \"1 ms\"\n[vary]\n\"link.rtt\" = [\"2 ms\"]");
    assert_eq!(message, "meter.toml: vary.link.rtt sets the same as link.rtt: keep one");
    let message = mistake("[link]\nrate = \"1 Mbit/s\"\nrate_up = \"2 Mbit/s\"");
    assert_eq!(message, "meter.toml: link.rate_up sets the same as link.rate: keep one");
}

#[test]
fn case_with_conflicting_choices() {
    let message = mistake(
        "[vary]\n\"stack.tls\" = [\"1.3\", \"1.2\"]\n\"stack.session\" = [\"full\", \"0-rtt\"]",
    );
    assert!(message.ends_with("(in the case stack.tls = 1.2, stack.session = 0-rtt)"), "{message}");
}

#[test]
fn line_of_a_syntax_error() {
    let message = mistake("[link]\nrtt = \"60 ms\nloss = 0\n");
    assert!(message.starts_with("meter.toml: line 3 is not TOML: "), "{message}");
    for (text, expected) in [
        ("trials = 1\ntrials = 2", "trials is given twice, in line 3 again: keep one"),
        (
            "[link]\nrtt = \"1 ms\"\nloss = 0\n\"rtt\" = \"2 ms\"",
            "link.rtt is given twice, in line 5 again: keep one",
        ),
        (
            "link = \"lte-m\"\n[link]\nrtt = \"1 ms\"",
            "link is given twice, in line 3 again: keep one, [link] or link = ...",
        ),
        (
            "[link]\nrtt = \"1 ms\"\n[link]\nloss = 0",
            "link is given twice, in line 4 again: keep one, [link] or link = ...",
        ),
        (
            "[vary]\nx = [\n99999999999999999999\n]",
            "line 4 holds 99999999999999999999: expected a number of at most 9223372036854775807",
        ),
    ] {
        assert_eq!(mistake(text), format!("meter.toml: {expected}"));
    }
    for number in ["99999999999999999999", "-9223372036854775809"] {
        let large = mistake(&format!("seed = {number}\n"));
        let expected = format!(
            "meter.toml: seed is {number}, in line 2: expected a number of at most \
             9223372036854775807"
        );
        assert_eq!(large, expected);
    }
    let message = parse("").unwrap_err();
    assert!(message.starts_with("meter.toml: name is missing"), "{message}");
    for name in ["../x", "", "a b", ".hidden", "ä"] {
        let message = parse(&format!("name = \"{name}\"")).unwrap_err();
        assert!(message.starts_with("meter.toml: name is \""), "{message}");
    }
}

#[test]
fn several_mistakes() {
    let text = "name = \"m\"\ntrials = 0\n[link]\nloss = 2\nrt = 1\n";
    let list = Study::check(text, "meter.toml", &[], common::catalog()).unwrap_err();
    let keys: Vec<&str> = list.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["link.loss", "link.rt", "trials"]);
}

#[test]
fn setting_of_an_absent_layer() {
    let message = mistake("stack = \"coap/con\"\n[vary]\n\"stack.tls\" = [\"1.2\", \"1.3\"]");
    assert!(message.contains("vary.stack.tls has no effect: coap has no TLS"), "{message}");
    let message =
        mistake("stack = \"coap/con\"\n[device]\nprofile = \"this-host\"\ntcp = \"linux-6.1\"");
    assert!(message.contains("device.tcp has no effect: coap has no TCP"), "{message}");
    let message = mistake("stack = \"coap/tls1.3\"");
    assert!(message.contains("\"tls1.3\" does not go with coap: coap has no TLS"), "{message}");
}

#[test]
fn key_store_beside_a_key_from_outside() {
    for text in [
        "key_store = \"iot-safe-sakomoto\"\nstack = \"https/tls1.3/psk\"",
        "[key_store]\nprofile = \"iot-safe-sakomoto\"\n[stack]\nauthentication = \"psk\"",
        "stack = \"https/tls1.3/psk\"\n[vary]\nkey_store = [\"software\", \"iot-safe-sakomoto\"]",
    ] {
        let message = mistake(text);
        assert!(message.contains("key_store"), "{message}");
        assert!(message.contains("has no effect: a key from outside lies with"), "{message}");
        assert!(message.contains("use stack.authentication = \"mutual\""), "{message}");
    }
    // Beside certificates, whose key the SIM holds, it is what they are compared to.
    let beside = study(
        "name = \"m\"\nkey_store = \"iot-safe-sakomoto\"\n\
         [vary]\n\"stack.authentication\" = [\"mutual\", \"psk\"]",
    );
    assert_eq!(beside.cases.len(), 2);
    let software = study("name = \"m\"\nkey_store = \"software\"\nstack = \"https/tls1.3/psk\"");
    assert_eq!(software.cases.len(), 1);
}

#[test]
fn narrow_link() {
    let message = mistake("[link]\nmtu = 68");
    let expected = "meter.toml: link.mtu is 68: expected a whole number from 576 to 65535";
    assert_eq!(message, expected);
    assert_eq!(study("name = \"m\"\n[link]\nmtu = 576").cases[0].link.mtu, 576);
}

#[test]
fn varied_setting_that_a_case_has_no_layer_for() {
    let message = mistake(
        "[vary]\nstack = [\"coap/con\", \"https/tls1.3\"]\n\
         \"stack.session\" = [\"full\", \"resumed\"]",
    );
    assert!(message.contains("vary.stack.session has no effect: coap has no TLS"), "{message}");
    assert!(message.contains("stack = coap/con, stack.session = resumed"), "{message}");
}

#[test]
fn retransmission_of_a_non_confirmable_message() {
    let message = mistake("stack = \"coap/non\"\n[vary]\n\"stack.max_retransmit\" = [0, 4]");
    assert!(message.contains("makes the same case of stack.max_retransmit = 0"), "{message}");
}

#[test]
fn default_path_of_each_protocol() {
    let study = study("name = \"m\"\n[vary]\nstack = [\"coap/con\", \"https/tls1.3\"]\n");
    let paths: Vec<&str> = study.cases.iter().map(|case| &*case.pattern.path).collect();
    assert_eq!(paths, ["/data", "/"]);
}

#[test]
fn requirement_on_a_metric_that_no_case_has() {
    let message =
        mistake("stack = \"coap/con\"\n[require]\n\"https.establishment.p99\" = \"< 5 s\"");
    assert!(message.contains("require.https.establishment.p99 judges no case"), "{message}");
    assert!(message.contains("coap has no https.establishment"), "{message}");
}

/// An id names results on disk: it must not change with the crate's version.
#[test]
fn golden_case_ids() {
    let text = "name = \"m\"\n[stack]\nclient_certificate_bytes = [474]\n\
                server_certificate_bytes = [474]\n\
                [vary]\n\"stack.tls\" = [\"1.2\", \"1.3\"]\n";
    let ids: Vec<String> = study(text).cases.iter().map(|case| case.id().0).collect();
    assert_eq!(ids, ["aae11564bb61110a", "e3c6d8d7003c1c9d"]);
    // The names that version 1 of the canonical form gave them, which seeds rest on.
    let seeds: Vec<String> = study(text).cases.iter().map(|case| case.seed_id().0).collect();
    assert_eq!(seeds, ["1d702a55d5f4bea2", "64431b88cf22c566"]);
    assert_eq!(tls(&study(text).cases[0]).key_share, KeyShare::Fresh);
}

#[test]
fn typed_columns_of_a_case() {
    let case = &study("name = \"m\"\nlink = \"nb-iot\"").cases[0];
    let value = |name: &str| {
        let column = case_columns().find(|column| column.name == name).expect("a column");
        column.value(case)
    };
    let text = |text: &str| Some(Value::Text(text.into()));
    assert_eq!(value("rtt_ns"), Some(Value::U64(837_000_000)));
    assert_eq!(value("rate_down_bps"), Some(Value::U64(26_000)));
    assert_eq!(value("loss_mean"), Some(Value::F64(0.02)));
    assert_eq!(value("jitter"), text("[0 ms, 20 ms, 50 ms, 150 ms, 1 s]"));
    assert_eq!(value("jitter_max_ns"), Some(Value::U64(1_000_000_000)));
    assert_eq!(value("cipher_suite"), text("TLS_AES_128_GCM_SHA256"));
    assert_eq!(value("server_name"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is changed in a good study, the answer is a study or one line.
    #[test]
    fn one_line_for_a_broken_study(
        position in 0_usize..1_500,
        insert in ".{0,6}",
        cut in 0_usize..8,
    ) {
        let files = common::toml_files("python/warifu/templates");
        let text = &files[position % files.len()].1;
        let mut characters: Vec<char> = text.chars().collect();
        let at = (position * 7) % characters.len();
        let end = (at + cut).min(characters.len());
        characters.splice(at..end, insert.chars());
        let broken: String = characters.into_iter().collect();
        if let Err(message) = parse(&broken) {
            prop_assert_eq!(message.lines().count(), 1, "{}", message);
            prop_assert!(message.starts_with("meter.toml: "));
        }
    }

    /// Adding a value to a list changes no other case's id.
    #[test]
    fn ids_after_adding_a_case(
        rtts in prop::collection::btree_set(0_u32..1_000, 1..6),
        more in 1_000_u32..2_000,
    ) {
        let ids = |rtts: &[u32]| -> Vec<String> {
            let list: Vec<String> = rtts.iter().map(|rtt| format!("\"{rtt} ms\"")).collect();
            let text = format!("name = \"m\"\n[vary]\n\"link.rtt\" = [{}]\n", list.join(", "));
            study(&text).cases.iter().map(|case| case.id().0).collect()
        };
        let few: Vec<u32> = rtts.into_iter().collect();
        let many: Vec<u32> = few.iter().copied().chain([more]).collect();
        prop_assert_eq!(&ids(&many)[..few.len()], &ids(&few)[..]);
    }
}
