// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON Web Tokens: what is in them, held against OpenSSL; kept, renewed, forgotten.

mod common;

use std::collections::VecDeque;
use std::time::Duration;

use common::{Bench, PIN, World, ask, jwt, soon};
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey, EcPoint};
use openssl::ecdsa::EcdsaSig;
use openssl::nid::Nid;
use warifu_agent::card::Caller;
use warifu_agent_protocol::message::{Call, JwtRequest};
use warifu_card::PinScope;
use warifu_card::faults::{Fault, Plan};
use warifu_iotsafe_client::{Token, TokenError};
use warifu_os::Clock;

const LONG: Duration = Duration::from_secs(10);

fn bench() -> Bench {
    let world = World::new(None, Plan::Script(VecDeque::new()), 1);
    let bench = Bench::new(world, None, Vec::new());
    bench.idle();
    bench
}

fn request(audience: &str, lifetime_s: u32) -> JwtRequest {
    JwtRequest { audience: vec![audience.to_owned()], lifetime_s, ..JwtRequest::default() }
}

fn get(bench: &Bench, request: &JwtRequest) -> String {
    jwt(ask(&mut bench.client(), Call::Jwt(request.clone())))
}

/// base64url without padding (RFC 7515 section 2), by OpenSSL.
fn decoded(part: &str) -> Vec<u8> {
    let mut text = part.replace('-', "+").replace('_', "/");
    text.extend(std::iter::repeat_n('=', text.len().wrapping_neg() % 4));
    openssl::base64::decode_block(&text).unwrap()
}

/// Header and claims of a token, whose signature OpenSSL verifies with the card's key.
fn verified(bench: &Bench, token: &str) -> (serde_json::Value, serde_json::Value) {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{token}") };
    let point = *bench.world().card.card().export_public_key(&[1]).unwrap().bytes();
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let mut context = BigNumContext::new().unwrap();
    let point = EcPoint::from_bytes(&group, &point, &mut context).unwrap();
    let key = EcKey::from_public_key(&group, &point).unwrap();
    let signature = decoded(signature);
    assert_eq!(signature.len(), 64);
    let number = |bytes: &[u8]| BigNum::from_slice(bytes).unwrap();
    let (r, s) = (number(&signature[..32]), number(&signature[32..]));
    let signature = EcdsaSig::from_private_components(r, s).unwrap();
    let digest = openssl::sha::sha256(format!("{header}.{claims}").as_bytes());
    assert!(signature.verify(&digest, &key).unwrap(), "{token}");
    let json = |part| serde_json::from_slice(&decoded(part)).unwrap();
    (json(header), json(claims))
}

#[test]
fn token_claims() {
    let bench = bench();
    let mut wanted = request("https://example.org", 600);
    wanted.issuer = Some("meter-7".to_owned());
    wanted.subject = Some("site".to_owned());
    wanted.key_id = Some("k1".to_owned());
    wanted.claims.insert("level".to_owned(), "3".to_owned());
    let now = bench.clock.unix_time().as_secs();
    let (header, claims) = verified(&bench, &get(&bench, &wanted));
    assert_eq!(
        (&header["alg"], &header["typ"], &header["kid"]),
        (&"ES256".into(), &"JWT".into(), &"k1".into())
    );
    let expected = serde_json::json!({
        "iss": "meter-7", "sub": "site", "aud": "https://example.org", "level": 3,
        "iat": claims["iat"], "exp": claims["iat"].as_u64().unwrap() + 600,
    });
    assert_eq!(claims, expected);
    assert!(claims["iat"].as_u64().unwrap().abs_diff(now) <= 1);
    wanted.audience.push("other".to_owned());
    let (_, claims) = verified(&bench, &get(&bench, &wanted));
    assert_eq!(claims["aud"], serde_json::json!(["https://example.org", "other"]));
}

#[test]
fn cached_token_is_renewed_before_it_expires() {
    let bench = bench();
    let card = &bench.agent.cards()[0];
    let wanted = request("a", 100);
    let first = get(&bench, &wanted);
    let before = bench.world().commands;
    assert_eq!(get(&bench, &wanted), first);
    assert_ne!(get(&bench, &request("b", 100)), first);
    assert_eq!(bench.world().commands - before, 1, "one signature for the other audience");

    bench.clock.advance(Duration::from_secs(40));
    card.jwts.tick(&card.holder);
    assert_eq!(get(&bench, &wanted), first, "not yet");
    // Over many lifetimes no caller waits: all the card's work is the renewals'.
    let misses = "warifu_agent_tokens_total{card=\"card\",kind=\"miss\"}";
    assert_eq!(bench.metric(misses), 2);
    let mut last = first;
    let mut renewals = 0;
    for _ in 0..100 {
        bench.clock.advance(Duration::from_secs(10));
        card.jwts.tick(&card.holder);
        let token = get(&bench, &wanted);
        let (_, claims) = verified(&bench, &token);
        let left = claims["exp"].as_u64().unwrap() - bench.clock.unix_time().as_secs();
        assert!(left >= 10, "{left} s left");
        renewals += u32::from(token != last);
        last = token;
    }
    assert_eq!(bench.metric(misses), 2);
    assert!((15..=25).contains(&renewals), "{renewals} in 1000 s at half of 100 s");
    assert_eq!(card.jwts.count(), 1, "what nobody asks for is not renewed");
}

#[test]
fn failed_renewal_keeps_the_old_token() {
    let bench = bench();
    let card = &bench.agent.cards()[0];
    let wanted = request("a", 1000);
    let first = get(&bench, &wanted);
    bench.clock.advance(Duration::from_secs(600));
    let gone = [Some(Fault::Removed { commands: 100_000 })];
    bench.world().card.replace_plan(Plan::Script(gone.into_iter().collect()));
    card.jwts.tick(&card.holder);
    assert_eq!(get(&bench, &wanted), first);
    let failed = "warifu_agent_tokens_total{card=\"card\",kind=\"not_renewed\"}";
    assert_eq!(bench.metric(failed), 1);
    bench.clock.advance(Duration::from_secs(350));
    let answer = ask(&mut bench.client(), Call::Jwt(wanted));
    assert!(matches!(answer, Err(TokenError::Transport(_))), "{answer:?}");
}

#[test]
fn invalid_token_requests() {
    let bench = bench();
    let claim = |name: &str, value: &str| {
        let mut request = request("a", 60);
        request.claims.insert(name.to_owned(), value.to_owned());
        request
    };
    for (wanted, says) in [
        (request("a", 0), "lifetime is 0 s"),
        (request("a", u32::MAX), "expected 1 to"),
        (claim("exp", "1"), "claim exp: use its own option"),
        (claim("x", "{"), "claim x is not valid JSON"),
        (JwtRequest { key: "none".to_owned(), ..request("a", 60) }, "no key \"none\""),
    ] {
        match ask(&mut bench.client(), Call::Jwt(wanted)) {
            Err(TokenError::Denied(text)) => assert!(text.contains(says), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn token_of_a_replaced_key_is_dropped() {
    let world = World::new(None, Plan::Script(VecDeque::new()), 1);
    common::locked(&world).add_pair(0x20, "spare");
    let bench = Bench::new(world, None, Vec::new());
    let wanted = JwtRequest { key: "spare".to_owned(), ..request("a", 1000) };
    let first = get(&bench, &wanted);
    assert_eq!(get(&bench, &wanted), first);
    // Past the server, which is where one that is just being signed comes from as well.
    bench.holder().generate(&Caller::AGENT, &[0x20], bench.clock.now() + LONG).unwrap();
    let second = get(&bench, &wanted);
    assert_ne!(second, first);
    assert_eq!(get(&bench, &wanted), second);
}

#[test]
fn tokens_after_pin_lifetime_are_dropped() {
    let world = World::new(Some(PinScope::Signing), Plan::Script(VecDeque::new()), 1);
    let lifetime = Some(Duration::from_secs(60));
    let bench = Bench::with(world, Some(PIN), lifetime, Vec::new());
    bench.idle();
    let wanted = request("a", 1000);
    let first = get(&bench, &wanted);
    bench.clock.advance(Duration::from_secs(61));
    bench.holder().tick();
    let answer = ask(&mut bench.client(), Call::Jwt(wanted.clone()));
    assert_eq!(answer, Err(TokenError::PinNeeded));
    bench.token().verify_pin(PIN.as_bytes(), soon()).unwrap();
    assert_ne!(get(&bench, &wanted), first);
}
