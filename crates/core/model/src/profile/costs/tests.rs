// SPDX-License-Identifier: Apache-2.0 OR MIT
use proptest::prelude::*;

use super::*;
use crate::case::tests::{any_tls, https};
use crate::case::{Aead, CertificateType, CipherSuite, Group, Tls, TlsVersion};
use crate::distribution::Distribution;
use crate::kind::Kind;
use crate::operation::{Direction, HandshakeMessage, Role};
use crate::primitive::HashAlgorithm;

const RECIPES: &str = r#"
name = "lib-1"
description = "a library"
source = "callgrind"
kind = "measured"

[[recipe]]
operation = "client.receive.Certificate"
when = { tls = "1.3" }
instructions = 10000
instructions_per_byte = 2.5
call = [
  { primitive = "aead.open", per_record = 1, per_message_byte = 1 },
  { primitive = "hash", count = 2, bytes = 10, per_message_byte = 1 },
  { primitive = "verify", per_certificate = 1 },
  { primitive = "x509.parse", per_certificate = 1 },
]

[[recipe]]
operation = "client.receive.Certificate"
when = { tls = "1.3", certificate = "rsa-2048" }
call = [{ primitive = "verify", count = 7 }]

[[recipe]]
operation = "client.receive.Finished"
when = { tls = ["1.2", "1.3"] }
call = [{ primitive = "hmac", count = 3, bytes = 20 }, { primitive = "hkdf", count = 2 }]

[[primitive]]
name = "x509.parse"
instructions = 4000
"#;

/// Round figures; `aead.open`, `hmac`, `hkdf` and `x509.parse` are left to stand-ins.
const DEVICE: &str = r#"
name = "d"
description = "a board"
library = "lib-1"
source = "a benchmark"
kind = "published"

[[operation]]
name = "client.receive.Certificate"
when = { tls = "1.2", certificate = "ecdsa_secp256r1", chain_length = [1, 2, 3] }
warm = "5 ms"

[[primitive]]
name = "instruction"
warm = "2 ns"
[[primitive]]
name = "verify.ecdsa_secp256r1"
warm = "80 ms"
cold = "81 ms"
[[primitive]]
name = "sign.ecdsa_secp256r1"
warm = "40 ms"
kind = "measured"
[[primitive]]
name = "hash.sha-256"
warm = "0 ns"
per_byte = "100 ns"
[[primitive]]
name = "aead.seal.AES_128_GCM"
warm = "20 us"
per_byte = "50 ns"
kind = "measured"
"#;

const CERTIFICATE: Operation =
    Operation::Tls(Role::Client, Direction::Receive, HandshakeMessage::Certificate);
const FINISHED: Operation =
    Operation::Tls(Role::Client, Direction::Receive, HandshakeMessage::Finished);

fn catalog(device: &str, recipes: &str) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.add(ProfileKind::Device, "d", device, "d.toml").unwrap();
    catalog.add(ProfileKind::Recipe, "lib-1", recipes, "lib-1.toml").unwrap();
    catalog
}

fn tls(chain_length: u8) -> Tls {
    Tls {
        version: TlsVersion::Tls13,
        group: Group::X25519,
        certificate: CertificateType::EcdsaSecp256r1,
        cipher_suite: CipherSuite::TlsAes128GcmSha256,
        chain_length,
        ..any_tls()
    }
}

fn total(cost: &Cost<'_>) -> u64 {
    cost.warm.mean().0 + cost.bytes_cost.0
}

#[test]
fn lowered_cost_is_the_sum_of_its_parts() {
    let catalog = catalog(DEVICE, RECIPES);
    let costs = catalog.costs("d").unwrap();
    let cost = costs.cost(CERTIFICATE, &https(tls(2)), 1_000).unwrap();
    let lowered = cost.lowered.clone().unwrap();
    let parts: Vec<(String, u64)> = lowered
        .parts
        .iter()
        .map(|part| (format!("{} by {}", part.primitive, part.figure), part.warm_ns as u64))
        .collect();
    let expected = [
        ("aead.open.AES_128_GCM by aead.seal.AES_128_GCM", 20_000 + 50_000),
        ("hash.sha-256 by hash.sha-256", 102_000),
        ("verify.ecdsa_secp256r1 by verify.ecdsa_secp256r1", 160_000_000),
        ("x509.parse by instruction", 16_000),
    ];
    assert_eq!(parts, expected.map(|(name, ns)| (name.to_owned(), ns)));
    assert_eq!(lowered.remainder_ns, 2.0 * 12_500.0);
    assert_eq!(total(&cost), 160_000_000 + 70_000 + 102_000 + 16_000 + 25_000);
    assert_eq!(total(&cost) as f64, lowered.warm_ns());
    assert_eq!(lowered.remainder_share(), 41_000.0 / lowered.warm_ns());
    assert_eq!(cost.cold.mean().0 - cost.warm.mean().0, 2_000_000);
    assert_eq!((lowered.recipe, cost.source), (Some("lib-1"), Some("callgrind")));
    // The recipe was measured and the seal as well, but not the rest.
    assert_eq!(cost.kind, Kind::Published);
}

#[test]
fn own_figure_wins_and_the_more_specific_recipe() {
    let text = RECIPES.replace("when = { tls = \"1.3\" }", "when = { tls = [\"1.2\", \"1.3\"] }");
    let catalog = catalog(
        &format!("{DEVICE}[[primitive]]\nname = \"verify.rsa-2048\"\nwarm = \"6 ms\"\n"),
        &text,
    );
    let costs = catalog.costs("d").unwrap();
    let own = Tls {
        version: TlsVersion::Tls12,
        cipher_suite: CipherSuite::TlsEcdheEcdsaWithAes128GcmSha256,
        ..tls(1)
    };
    let cost = costs.cost(CERTIFICATE, &https(own), 1_000).unwrap();
    assert_eq!((total(&cost), cost.lowered), (5_000_000, None));
    let rsa = Tls { certificate: CertificateType::Rsa2048, ..tls(3) };
    assert_eq!(total(&costs.cost(CERTIFICATE, &https(rsa), 1_000).unwrap()), 42_000_000);
}

#[test]
fn signature_is_its_algorithms_call() {
    let catalog = catalog(DEVICE, RECIPES);
    let costs = catalog.costs("d").unwrap();
    for role in [Role::Client, Role::Server] {
        let cost = costs.cost(Operation::Sign(role), &https(tls(1)), 0).unwrap();
        assert_eq!((total(&cost), cost.kind), (40_000_000, Kind::Measured));
        assert_eq!(cost.lowered.unwrap().recipe, None);
    }
    let rsa = https(Tls { certificate: CertificateType::Rsa2048, ..tls(1) });
    let error = costs.cost(Operation::Sign(Role::Client), &rsa, 0).unwrap_err().to_string();
    assert!(error.starts_with("d.toml: sign.rsa-2048 has no cost"), "{error}");
}

#[test]
fn hmac_of_a_hash_takes_four_compressions_at_least() {
    let catalog = catalog(DEVICE, RECIPES);
    let costs = catalog.costs("d").unwrap();
    let cost = costs.cost(FINISHED, &https(tls(1)), 36).unwrap();
    // A mere rate: three of 20 B and two of none, each four blocks of 64 B.
    assert_eq!(total(&cost), 5 * 4 * 64 * 100);
    let fitted = DEVICE.replace("warm = \"0 ns\"\nper_byte", "warm = \"7 us\"\nper_byte");
    let catalog = self::catalog(&fitted, RECIPES);
    let cost = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap();
    assert_eq!(total(&cost), 5 * 14_000 + (5 * 160 + 60) * 100);
    let own = "[[primitive]]\nname = \"hmac.sha-256\"\nwarm = \"30 us\"\nper_byte = \"1 ns\"\n";
    let catalog = self::catalog(&format!("{DEVICE}{own}"), RECIPES);
    let cost = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap();
    assert_eq!(total(&cost), 5 * 30_000 + 60);
    // A stand-in is computed, whatever its figure.
    let measured = DEVICE.replace("kind = \"published\"", "kind = \"measured\"");
    let catalog = self::catalog(&measured, RECIPES);
    let kind = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap().kind;
    assert_eq!(kind, Kind::Simulated);
}

/// Two calls that give three digests are six HMACs: two of A(0), the seed; one of A(1), a
/// digest; three of A(i) and the seed.
#[test]
fn prf_takes_two_hmacs_for_each_digest() {
    let recipes = RECIPES
        .replace("hmac\", count = 3, bytes = 20", "prf\", count = 2, bytes = 48")
        .replace(", { primitive = \"hkdf\", count = 2 }", "");
    let finished = |device: &str| {
        let catalog = self::catalog(device, &recipes);
        total(&catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap())
    };
    let hmac = "[[primitive]]\nname = \"hmac.sha-256\"\nwarm = \"30 us\"\nper_byte = \"1 ns\"\n";
    assert_eq!(finished(&format!("{DEVICE}{hmac}")), 6 * 30_000 + (4 * 32 + 5 * 60));
    let own = "[[primitive]]\nname = \"prf.sha-256\"\nwarm = \"9 us\"\nper_byte = \"2 ns\"\n";
    assert_eq!(finished(&format!("{DEVICE}{hmac}{own}")), 2 * 9_000 + 96 * 2);
    // Of the hash's rate: inner and outer hash of each HMAC in whole blocks.
    let by_hash = finished(DEVICE);
    assert_eq!(by_hash % (64 * 100), 0);
    assert!((6 * 4..=6 * 5).contains(&(by_hash / (64 * 100))), "{by_hash}");
}

/// One byte takes what another does, so that the band of a message is that of its bytes.
#[test]
fn bytes_that_have_a_law_keep_its_band_and_its_mean() {
    let law = "per_byte = { quantiles = [50, 100, 150], unit = \"ns\" }";
    let banded = DEVICE.replacen("per_byte = \"100 ns\"", law, 1);
    assert_ne!(banded, DEVICE);
    let (one, other) = (catalog(DEVICE, RECIPES), catalog(&banded, RECIPES));
    let [one, other] = [&one, &other]
        .map(|catalog| catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap());
    let whole = total(&one);
    assert_eq!(one.warm.min(), one.warm.max());
    assert_eq!(other.bytes_cost.0 + other.warm.min().0, whole / 2);
    assert_eq!(other.bytes_cost.0 + other.warm.max().0, whole / 2 * 3);
    assert!(total(&other).abs_diff(whole) <= whole / 1_000, "{} {whole}", total(&other));
}

/// What one constant may be: its calls and bytes are slow together, it is taken for the middle of
/// its band, and what varies is apart.
#[test]
fn assumed_figure_is_taken_for_the_middle_of_its_band() {
    let constant = "warm = \"10 us\"\nper_byte = \"100 ns\"";
    let band = "warm = { quantiles = [1, 10, 1000], unit = \"us\" }\n\
                per_byte = { quantiles = [10, 100, 10000], unit = \"ns\" }\n";
    let finished = |figure: &str| {
        let text = DEVICE.replacen("warm = \"0 ns\"\nper_byte = \"100 ns\"", figure, 1);
        assert_ne!(text, DEVICE);
        let catalog = catalog(&text, RECIPES);
        let cost = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap();
        let estimates = [false, true].map(|cold| cost.estimate_ns(cold).round() as u64);
        let laws = [cost.law(false).quantile(0.0).0, cost.law(false).quantile(1.0).0];
        (estimates, laws, cost.bands, cost.lowered.unwrap().warm_ns().round() as u64)
    };
    let (estimates, _, bands, parts) = finished(constant);
    assert!(bands.is_empty() && estimates == [parts; 2]);
    let (assumed, laws, bands, lowered) = finished(&format!("{band}kind = \"assumed\""));
    assert_eq!((assumed, lowered), (estimates, parts));
    assert_eq!(laws, [parts / 10, 100 * parts]);
    let [one] = &bands[..] else { panic!("{bands:?}") };
    assert_eq!(one.of, BandOf::Primitive(Primitive::Hash(HashAlgorithm::Sha256)));
    // A published law is of calls that differ: its mean counts, and there is no band.
    let (published, _, bands, _) = finished(band);
    assert!(bands.is_empty() && published[0] > 20 * parts, "{published:?} {parts}");
    // A tail is of what happens by chance.
    let tail = "warm = { quantiles = [1, 10], unit = \"us\", tail = { probability = 0.1, \
                quantiles = [1, 2] } }\nkind = \"assumed\"";
    assert!(finished(tail).2.is_empty());
}

/// Own figures of operations are no other, and what stands above all measure is refused.
#[test]
fn bands_of_operations_and_their_bounds() {
    let entry = "warm = { quantiles = [1, 5, 9], unit = \"ms\" }\nkind = \"assumed\"";
    let catalog = self::catalog(&DEVICE.replacen("warm = \"5 ms\"", entry, 1), RECIPES);
    let tls12 = Tls { version: TlsVersion::Tls12, ..tls(1) };
    let cost = catalog.costs("d").unwrap().cost(CERTIFICATE, &https(tls12), 0).unwrap();
    assert_eq!(
        cost.bands.iter().map(|band| band.of).collect::<Vec<_>>(),
        [BandOf::Operation(CERTIFICATE)]
    );
    assert_eq!((cost.estimate_ns(false), cost.warm.max().0), (5e6, 0));
    let long = "warm = { quantiles = [1, 2, 9007199254740992], unit = \"ns\" }\n\
                kind = \"assumed\"";
    let text = DEVICE.replacen("warm = \"0 ns\"\nper_byte = \"100 ns\"", long, 1);
    let catalog = self::catalog(&text, RECIPES);
    let error = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 36).unwrap_err();
    assert!(
        error.to_string().contains("d.toml: hash.sha-256 makes client.receive.Finished take more"),
        "{error}"
    );
}

#[test]
fn missing_primitives_are_named() {
    let catalog = catalog(DEVICE, RECIPES);
    let costs = catalog.costs("d").unwrap();
    let aes_256 = https(Tls { cipher_suite: CipherSuite::TlsAes256GcmSha384, ..tls(1) });
    assert_eq!(
        costs.cost(FINISHED, &aes_256, 36).unwrap_err().to_string(),
        "d.toml: hmac.sha-384, hkdf.sha-384 have no cost, which client.receive.Finished takes \
         by the recipes of lib-1: add a [[primitive]] of each name with its time a call and \
         per_byte, or calibrate the device"
    );
    let both = [CERTIFICATE, FINISHED];
    let error = costs.lacks(&both, &aes_256).unwrap().to_string();
    assert!(error.contains("hash.sha-384, hmac.sha-384 and 1 more have no cost"), "{error}");
    assert!(error.ends_with("; `warifu trace --costs` lists all of them"), "{error}");
    assert_eq!(costs.missing_operations(&both, &aes_256), both);
    assert!(costs.lacks(&both, &https(tls(1))).is_none());
    let none = DEVICE.replace("name = \"instruction\"", "name = \"random\"");
    let catalog = self::catalog(&none, RECIPES);
    let error = catalog.costs("d").unwrap().lacks(&both, &https(tls(1))).unwrap().to_string();
    assert!(error.starts_with("d.toml: x509.parse, instruction have no cost"), "{error}");
}

/// An entry that leaves open what its cost depends on may be another algorithm's figure.
#[test]
fn figure_that_does_not_say_of_which_algorithm_it_is() {
    let entry = |when: &str| {
        format!(
            "{DEVICE}\n[[operation]]\nname = \"client.receive.Certificate\"\n\
             {when}warm = \"1 ms\"\n"
        )
    };
    let cost = |when: &str| {
        let catalog = catalog(&entry(when), RECIPES);
        let costs = catalog.costs("d").unwrap();
        let error = costs.lacks(&[CERTIFICATE], &https(tls(2))).map(|error| error.to_string());
        let cost = costs.cost(CERTIFICATE, &https(tls(2)), 0);
        assert_eq!(cost.as_ref().err().map(ToString::to_string), error);
        cost.map(|cost| total(&cost)).map_err(|error| error.to_string())
    };
    assert_eq!(
        cost(""),
        Err("d.toml: client.receive.Certificate has a cost that says nothing of tls, \
             certificate, chain_length, on which it depends: add when = { tls = \"1.3\", \
             certificate = \"ecdsa_secp256r1\", chain_length = 2 } to it (or all words, where \
             it was found to be the same), or calibrate the device again"
            .into())
    );
    let all = "when = { tls = \"1.3\", certificate = [\"ecdsa_secp256r1\", \"rsa-2048\"], \
               chain_length = [1, 2, 3] }\n";
    assert_eq!(cost(all), Ok(1_000_000));
    // What holds for others leaves the recipe in its place.
    let rsa = all.replace("\"ecdsa_secp256r1\", ", "");
    assert_eq!(cost(&rsa), cost(&all.replace("\"1.3\"", "\"1.2\"")));
}

#[test]
fn library_without_recipes() {
    let text = DEVICE.replace("lib-1", "lib-2");
    let catalog = catalog(&text, RECIPES);
    let error = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "d.toml: library is \"lib-2\": expected one of lib-1; did you mean \"lib-1\"?"
    );
    let text = DEVICE.replace("library = \"lib-1\"\n", "");
    let catalog = self::catalog(&text, RECIPES);
    let error = catalog.costs("d").unwrap().cost(FINISHED, &https(tls(1)), 0).unwrap_err();
    assert!(error.to_string().contains("without library = \"lib-1\""), "{error}");
}

#[test]
fn inputs_of_a_recipe_are_its_own_and_its_primitives() {
    let catalog = catalog(DEVICE, RECIPES);
    let costs = catalog.costs("d").unwrap();
    let inputs = costs.inputs(&https(tls(1)), |operation| operation == CERTIFICATE);
    let found: Vec<(FigureOf, &str, Kind)> =
        inputs.iter().map(|input| (input.of, input.key.as_str(), input.kind)).collect();
    let of = FigureOf::Device;
    assert_eq!(
        found,
        [
            (FigureOf::Recipe, "client.receive.Certificate", Kind::Measured),
            (of, "aead.seal.AES_128_GCM", Kind::Measured),
            (of, "hash.sha-256", Kind::Published),
            (of, "verify.ecdsa_secp256r1", Kind::Published),
            (of, "instruction", Kind::Published),
            (of, "instruction", Kind::Published),
            (of, "aead.open.AES_128_GCM", Kind::Simulated),
            (of, "x509.parse", Kind::Simulated),
            (of, "idle_threshold", Kind::Assumed),
        ]
    );
    assert_eq!(
        inputs[0].value.text.split(", ").next(),
        Some("1 a record aead.open of the message")
    );
    assert_eq!(inputs[4].value.text, "2 ns");
}

#[test]
fn spread_of_a_message_is_that_of_independent_calls() {
    let spread = "warm = { quantiles = [60, 100], unit = \"ms\" }";
    let text = DEVICE.replace("warm = \"80 ms\"\ncold = \"81 ms\"", spread);
    let catalog = catalog(&text, RECIPES);
    let costs = catalog.costs("d").unwrap();
    let law = |chain| costs.cost(CERTIFICATE, &https(tls(chain)), 0).unwrap().warm.into_owned();
    let width = |law: &Distribution| law.quantile(0.9).0 as f64 - law.quantile(0.1).0 as f64;
    assert_eq!((law(3).mean().0 / 1_000_000, law(1).mean().0 / 1_000_000), (240, 80));
    let ratio = width(&law(3)) / width(&law(1));
    assert!((1.55..1.95).contains(&ratio), "{ratio}");
    assert_eq!(law(3), law(3));
}

proptest! {
    /// More bytes or certificates never take less, whatever stands in.
    #[test]
    fn cost_grows_with_bytes(
        bytes in 0_u32..100_000,
        more in 0_u32..100_000,
        chain in 1_u8..3,
    ) {
        let catalog = catalog(DEVICE, RECIPES);
        let costs = catalog.costs("d").unwrap();
        for operation in [CERTIFICATE, FINISHED] {
            let of = |bytes, chain| {
                total(&costs.cost(operation, &https(tls(chain)), bytes).unwrap())
            };
            prop_assert!(of(bytes, chain) <= of(bytes + more, chain));
            prop_assert!(of(bytes, chain) <= of(bytes, chain + 1));
        }
    }

    /// Whatever the kinds of its figures, a message is as good as the weakest of them and of
    /// the recipe.
    #[test]
    fn kind_is_the_weakest(
        kinds in prop::collection::vec(
            prop::sample::select(vec!["measured", "published", "assumed"]),
            4,
        ),
    ) {
        let recipes =
            RECIPES.replace("kind = \"measured\"", &format!("kind = \"{}\"", kinds[0]));
        let primitives = ["verify.ecdsa_secp256r1", "hash.sha-256", "aead.open.AES_128_GCM"];
        let mut text = "name = \"d\"\ndescription = \"a board\"\nlibrary = \"lib-1\"\n\
            source = \"s\"\nkind = \"measured\"\n[[primitive]]\nname = \"instruction\"\n\
            warm = \"2 ns\"\n[[primitive]]\nname = \"x509.parse\"\nwarm = \"2 ns\"\n"
            .to_owned();
        for (name, kind) in primitives.iter().zip(&kinds[1..]) {
            text += &format!(
                "[[primitive]]\nname = \"{name}\"\nwarm = \"1 us\"\nkind = \"{kind}\"\n\
                 source = \"s\"\n"
            );
        }
        let text = text.replace("kind = \"assumed\"\nsource = \"s\"\n", "kind = \"assumed\"\n");
        let catalog = catalog(&text, &recipes);
        let costs = catalog.costs("d").unwrap();
        let kind = costs.cost(CERTIFICATE, &https(tls(1)), 9).unwrap().kind;
        let mut worst_first = ["assumed", "published", "measured"].into_iter();
        let weakest = worst_first.find(|kind| kinds.contains(kind));
        prop_assert_eq!(Some(kind.name()), weakest);
    }
}

#[test]
fn group_hash_and_cipher_follow_from_the_case() {
    let recipes = RECIPES.replace("hmac\", count = 3, bytes = 20", "ecdh.derive\", count = 1");
    let catalog = catalog(DEVICE, &recipes);
    let missing = |tls: Tls| {
        let missing = catalog.costs("d").unwrap().missing_primitives(&[FINISHED], &https(tls));
        missing.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(missing(tls(1)), ["ecdh.derive.x25519"]);
    let other = Tls {
        group: Group::Secp256r1,
        cipher_suite: CipherSuite::of(
            TlsVersion::Tls13,
            CertificateType::EcdsaSecp256r1,
            Aead::Aes256Gcm,
        ),
        ..tls(1)
    };
    assert_eq!(missing(other), ["ecdh.derive.secp256r1", "hkdf.sha-384"]);
}
