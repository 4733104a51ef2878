// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long each TLS message takes to make or to process, for calibration.
//!
//! Client and server are stepped over memory by one thread. Every interval inside a call of
//! libssl belongs to exactly one message, so that the parts add up to the whole. *Warm* runs go
//! from one wake-up to the next at once; *cold* ones sleep between wake-ups as a real connection
//! does while it waits for the network, so that caches and the processor's idle states have had
//! their effect. *Rested* ones go from one wake-up to the next at once as well, but begin after a
//! pause in which other data went through all caches: so begins the connection of a device that
//! makes one now and then, whose each message is the first of its kind after the pause.

mod config;
mod intervals;
mod primitives;
mod reading;
mod rest;
mod samples;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openssl::ssl::SslSession;
use serde::Serialize;
use warifu_tls_client::party::{Exchange, Party};
use warifu_tls_client::record::Pair;
use warifu_tls_client::{Error, Pki, Variant, Watch};

pub use config::Config;
pub use primitives::Primitive;
pub use samples::{Calls, Key, QUANTILES, Side, Summary, Temperature};

use intervals::{Intervals, Times};
use primitives::Primitives;
use rest::Rest;
use samples::Samples;

/// All that a run of the bench finds out.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The version of libssl, as it says it.
    pub openssl: String,
    /// The pause before each wake-up of a cold run, ms.
    pub gap_ms: f64,
    /// The pause before each rested connection, ms.
    pub rest_ms: f64,
    /// The variants, in the order in which `messages` counts them.
    pub variants: Vec<Variant>,
    /// One entry for each variant, temperature, side, direction and message.
    pub messages: Vec<Summary>,
    /// One entry for each variant, temperature and side: all of its calls, which the messages tile.
    pub calls: Vec<Calls>,
    /// What reading the clocks costs, ns of processor time. Each message contains one reading.
    pub reading_cpu_ns: f64,
    /// Stand-alone operations.
    pub primitives: Vec<Primitive>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// Times every variant, round robin, so that drift hits all alike.
pub fn run(
    config: &Config,
    progress: &mut dyn FnMut(u32, u32),
    stop: &AtomicBool,
) -> Result<Report, Error> {
    let benches: Vec<Bench> = config
        .variants
        .iter()
        .map(|variant| Bench::new(variant, config))
        .collect::<Result<_, _>>()?;
    let mut primitives = Primitives::new(config)?;
    let mut samples = Samples::default();
    let rounds = config.warm + config.cold;
    let mut rested = 0;
    let mut rest = Rest::new(config);
    let mut stopped = false;
    // One turn more, for rested rounds where there are no others.
    for round in 0..=rounds {
        while rested < config.rested_after(round) && !stop.load(Ordering::Relaxed) {
            rested += 1;
            for (index, bench) in benches.iter().enumerate() {
                rest.pause();
                bench.measure(Duration::ZERO, &mut |side, times| {
                    samples.add(index, Temperature::Rested, side, times);
                })?;
            }
        }
        if round == rounds {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            stopped = true;
            break;
        }
        // Cold and warm rounds by turns, as long as there are both.
        let temperature = config.temperature_of(round);
        let gap = match temperature {
            Temperature::Warm | Temperature::Rested => Duration::ZERO,
            Temperature::Cold => Duration::from_secs_f64(config.gap_ms / 1e3),
        };
        for (index, bench) in benches.iter().enumerate() {
            bench.measure(gap, &mut |side, times| {
                samples.add(index, temperature, side, times);
            })?;
        }
        primitives.reach(round + 1, rounds)?;
        progress(round + 1, rounds);
    }
    if !stopped {
        primitives.reach(1, 1)?; // where no message is timed
    }
    let (messages, calls) = samples.summaries();
    Ok(Report {
        openssl: openssl::version::version().to_owned(),
        gap_ms: config.gap_ms,
        rest_ms: config.rest_ms,
        variants: config.variants.clone(),
        messages,
        calls,
        reading_cpu_ns: reading::reading_cpu_ns(),
        primitives: primitives.results(),
        stopped,
    })
}

/// Both ends of a variant, with a session if it resumes.
struct Bench {
    pair: Pair,
    exchange: Exchange,
    session: Option<SslSession>,
}

impl Bench {
    fn new(variant: &Variant, config: &Config) -> Result<Bench, Error> {
        let pki = Pki::generate(variant.certificate, variant.chain_length)?;
        let pair = Pair::new(variant, &pki)?;
        let exchange = Exchange::get("/", config.response_bytes);
        let session = match variant.session.is_resumed() {
            true => Some(pair.first_session(&exchange)?),
            false => None,
        };
        Ok(Bench { pair, exchange, session })
    }

    /// One connection; each side's times are told at its end.
    fn measure(&self, gap: Duration, tell: &mut dyn FnMut(Side, Times)) -> Result<(), Error> {
        let watched = [Intervals::new(), Intervals::new()];
        let watches = [0, 1].map(|end| watched[end].clone() as Arc<dyn Watch>);
        let (mut client, mut server) =
            self.pair.parties(&self.exchange, self.session.as_ref(), Some(watches))?;
        let wake = |party: &mut Party, end: usize| -> Result<Vec<Vec<u8>>, Error> {
            if !gap.is_zero() {
                std::thread::sleep(gap);
            }
            party.wake(&mut &*watched[end])?;
            Ok(party.take_writes())
        };
        loop {
            let flight = wake(&mut client, 0)?;
            if flight.is_empty() {
                break;
            }
            flight.iter().for_each(|bytes| server.feed(bytes));
            let flight = wake(&mut server, 1)?;
            if flight.is_empty() {
                break;
            }
            flight.iter().for_each(|bytes| client.feed(bytes));
        }
        if !(client.is_done() && server.is_done()) {
            return Err(Error::Tls("the exchange ended before both sides were done".into()));
        }
        for (side, intervals) in [Side::Client, Side::Server].into_iter().zip(&watched) {
            tell(side, intervals.take());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use warifu_model::{
        Aead, Authentication, CertificateType, CipherSuite, Group, KeyShare, Keyword, Session,
        TlsVersion,
    };

    use super::reading::Reading;
    use super::*;

    fn config(tls: TlsVersion, session: Session) -> Config {
        let certificate = CertificateType::EcdsaSecp256r1;
        let variant = Variant {
            tls,
            session,
            authentication: Authentication::Mutual,
            group: Group::Secp256r1,
            certificate,
            chain_length: 1,
            cipher_suite: CipherSuite::of(tls, certificate, Aead::Aes128Gcm),
            key_share: KeyShare::Fresh,
            nagle: false,
            server_name: None,
            psk: None,
        };
        Config {
            variants: vec![variant],
            warm: 3,
            cold: 2,
            gap_ms: 0.1,
            rested: 1,
            rest_ms: 0.1,
            response_bytes: 1_000,
            primitives: 0,
        }
    }

    fn names(report: &Report, side: Side, sent: bool) -> Vec<&'static str> {
        let warm = |summary: &&Summary| {
            summary.key.temperature == Temperature::Warm
                && summary.key.side == side
                && summary.key.part.sent == sent
        };
        report.messages.iter().filter(warm).map(|summary| summary.key.part.message).collect()
    }

    #[test]
    fn full_handshake_times_every_message() {
        let config = config(TlsVersion::Tls13, Session::Full);
        let report = run(&config, &mut |_, _| {}, &AtomicBool::new(false)).unwrap();
        let mut sent = names(&report, Side::Client, true);
        sent.sort_unstable();
        assert_eq!(
            sent,
            [
                // close_notify.
                "Alert",
                "ApplicationData",
                "Certificate",
                "CertificateVerify",
                "ChangeCipherSpec",
                "ClientHello",
                "Finished"
            ]
        );
        let received = names(&report, Side::Server, false);
        for message in
            ["ClientHello", "Certificate", "CertificateVerify", "Finished", "ApplicationData"]
        {
            assert!(received.contains(&message), "{message} in {received:?}");
        }
        for summary in &report.messages {
            let expected = match summary.key.temperature {
                Temperature::Warm => 3,
                Temperature::Cold => 2,
                Temperature::Rested => 1,
            };
            // Two tickets a connection.
            let each = if summary.key.part.message == "NewSessionTicket" { 2 } else { 1 };
            assert_eq!(summary.n, expected * each, "{:?}", summary.key);
        }
    }

    fn every_kind() -> impl Iterator<Item = (TlsVersion, Session)> {
        let versions = TlsVersion::ALL.iter().copied();
        versions.flat_map(|tls| {
            let fitting = Session::ALL.iter().filter(move |session| session.fits(tls));
            fitting.map(move |&session| (tls, session))
        })
    }

    #[test]
    fn message_times_sum_to_time_in_calls() {
        for (tls, session) in every_kind() {
            let config = config(tls, session);
            let bench = Bench::new(&config.variants[0], &config).unwrap();
            let mut sides = Vec::new();
            let mut tell = |side, times: Times| {
                let parts = times.parts.iter().map(|interval| interval.time);
                let sum = parts.fold(times.idle, Reading::plus);
                assert_eq!(sum, times.total, "{tls:?} {session:?} {side:?}");
                let least = times.parts.iter().map(|interval| interval.time.wall_ns).min();
                assert!(least.is_some_and(|least| least > 0), "{tls:?} {session:?} {side:?}");
                sides.push(side);
            };
            bench.measure(Duration::ZERO, &mut tell).unwrap();
            assert_eq!(sides, [Side::Client, Side::Server]);
        }
    }

    #[test]
    fn report_means_sum_to_call_means() {
        let config = config(TlsVersion::Tls13, Session::Full);
        let report = run(&config, &mut |_, _| {}, &AtomicBool::new(false)).unwrap();
        assert_eq!(report.calls.len(), 6, "two sides at three temperatures");
        for calls in &report.calls {
            let of_it = report.messages.iter().filter(|summary| {
                (summary.key.temperature, summary.key.side) == (calls.temperature, calls.side)
            });
            let sum: f64 = of_it.map(|summary| summary.mean_cpu_ns * summary.n as f64).sum();
            let all = (calls.mean_cpu_ns - calls.idle_mean_cpu_ns) * calls.n as f64;
            assert!((sum - all).abs() < 1.0, "{sum} {all}");
        }
        assert!(report.reading_cpu_ns > 0.0);
    }

    #[test]
    fn resumed_sessions_send_no_server_certificate() {
        for (tls, session) in every_kind().filter(|(_, session)| session.is_resumed()) {
            let report =
                run(&config(tls, session), &mut |_, _| {}, &AtomicBool::new(false)).unwrap();
            assert!(!names(&report, Side::Server, true).contains(&"Certificate"), "{session:?}");
        }
    }

    #[test]
    fn stop_before_the_first_round() {
        let config = config(TlsVersion::Tls13, Session::Full);
        let report = run(&config, &mut |_, _| {}, &AtomicBool::new(true)).unwrap();
        assert!(report.stopped && report.messages.is_empty());
    }
}
