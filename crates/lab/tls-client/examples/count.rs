// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client and server of OpenSSL over memory, cut into messages as calibration cuts them, for
//! callgrind: `bench/recipes/build openssl` links this to OpenSSL's static libraries and to
//! `bench/recipes/probe.c`, which `count.py` runs.
//!
//! usage: count PKI_FOLDER VARIANT.json-as-text RESPONSE_BYTES ROUNDS

#[path = "../../calibrate-bench/src/tls/intervals.rs"]
#[allow(dead_code, unused_imports)]
mod intervals;

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::Arc;

use openssl::pkey::PKey;
use openssl::ssl::SslSession;
use openssl::x509::X509;
use warifu_tls_client::party::{Exchange, Party};
use warifu_tls_client::pki::Issued;
use warifu_tls_client::record::Pair;
use warifu_tls_client::{Pki, Variant, Watch};

use intervals::Intervals;

unsafe extern "C" {
    /// See `bench/recipes/probe.h`.
    fn recipes_border(end: *const c_char, message: *const c_char, length: usize);
    fn recipes_begin();
    static mut recipes_tls12: i32;
}

/// In place of the bench's clocks: which parts of the count lie in an interval, as a set of bits.
mod reading {
    use std::sync::atomic::{AtomicUsize, Ordering};

    static PARTS: AtomicUsize = AtomicUsize::new(0);
    const WORDS: usize = 16;

    /// The parts up to now, or those of an interval.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Reading(pub [u64; WORDS]);

    impl Reading {
        /// Ends a part.
        pub(crate) fn now() -> Reading {
            super::border("part", "");
            let done = PARTS.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(done <= 64 * WORDS, "a connection of more than {} parts", 64 * WORDS);
            Reading(std::array::from_fn(|word| {
                let bits = done.saturating_sub(64 * word).min(64);
                if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
            }))
        }

        pub(crate) fn since(self, earlier: Reading) -> Reading {
            Reading(std::array::from_fn(|word| self.0[word] & !earlier.0[word]))
        }

        pub(crate) fn plus(self, other: Reading) -> Reading {
            Reading(std::array::from_fn(|word| self.0[word] | other.0[word]))
        }

        /// Numbers of the parts in it.
        pub(crate) fn parts(self) -> Vec<usize> {
            (0..64 * WORDS).filter(|part| self.0[part / 64] >> (part % 64) & 1 == 1).collect()
        }

        pub(crate) fn restart() {
            PARTS.store(0, Ordering::Relaxed);
        }
    }
}

fn border(end: &str, message: &str) {
    let text = |text: &str| CString::new(text).expect("no zero byte");
    let (end, message) = (text(end), text(message));
    // SAFETY: both are live and end with a zero byte.
    unsafe { recipes_border(end.as_ptr(), message.as_ptr(), 0) };
}

/// One connection, and which parts of the count belong to which message.
fn connect(pair: &Pair, exchange: &Exchange, session: Option<&SslSession>) {
    let watched = [Intervals::new(), Intervals::new()];
    let watches = [0, 1].map(|end| watched[end].clone() as Arc<dyn Watch>);
    reading::Reading::restart();
    let (mut client, mut server) =
        pair.parties(exchange, session, Some(watches)).expect("two ends");
    let wake = |party: &mut Party, end: usize| {
        party.wake(&mut &*watched[end]).expect("a handshake");
        party.take_writes()
    };
    loop {
        let flight = wake(&mut client, 0);
        flight.iter().for_each(|bytes| server.feed(bytes));
        let answer = wake(&mut server, 1);
        answer.iter().for_each(|bytes| client.feed(bytes));
        if flight.is_empty() && answer.is_empty() {
            break;
        }
    }
    assert!(client.is_done() && server.is_done(), "the exchange ended early");
    for (end, intervals) in ["client", "server"].iter().zip(&watched) {
        for interval in intervals.take().parts {
            let verb = if interval.part.sent { "send" } else { "receive" };
            let parts = interval.time.parts().iter().map(usize::to_string).collect::<Vec<_>>();
            println!("parts {end} {verb} {} {}", interval.part.message, parts.join(","));
        }
    }
}

/// What `warifu-tls pki` wrote: keys of RSA take seconds to make under callgrind.
fn read(folder: &Path, variant: &Variant) -> Pki {
    let file = |name: &str| std::fs::read(folder.join(name)).expect("a file of warifu-tls pki");
    let key = |name: &str| PKey::private_key_from_pem(&file(name)).expect("a key");
    let chain = |name: &str| X509::stack_from_pem(&file(name)).expect("a chain");
    let leaf = |end: &str| Issued {
        certificate: chain(&format!("{end}-chain.pem")).swap_remove(0),
        key: key(&format!("{end}.key")),
    };
    // The authorities' keys sign no more; whichever stands there is not used.
    let intermediates = chain("server-chain.pem").into_iter().skip(1).rev();
    Pki {
        certificate: variant.certificate,
        root: Issued { certificate: chain("root.pem").swap_remove(0), key: key("server.key") },
        intermediates: intermediates
            .map(|certificate| Issued { certificate, key: key("server.key") })
            .collect(),
        server: leaf("server"),
        client: leaf("client"),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, variant, response_bytes, rounds] = words.as_slice() else {
        eprintln!("usage: count PKI_FOLDER VARIANT RESPONSE_BYTES ROUNDS");
        std::process::exit(2);
    };
    let variant: Variant = serde_json::from_str(variant).expect("a variant");
    variant.check().expect("a variant");
    // SAFETY: no other thread runs.
    unsafe { recipes_tls12 = i32::from(variant.tls == warifu_model::TlsVersion::Tls12) };
    let pki = read(Path::new(folder), &variant);
    let pair = Pair::new(&variant, &pki).expect("two contexts");
    let exchange = Exchange::get("/", response_bytes.parse().expect("a length"));
    let session =
        variant.session.is_resumed().then(|| pair.first_session(&exchange).expect("a session"));
    for _ in 0..2 {
        connect(&pair, &exchange, session.as_ref()); // what is made once is made
    }
    // SAFETY: it takes nothing.
    unsafe { recipes_begin() };
    for _ in 0..rounds.parse().expect("a number") {
        border("=", "");
        connect(&pair, &exchange, session.as_ref());
    }
}
