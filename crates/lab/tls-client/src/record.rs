// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of a whole exchange, message by message, as OpenSSL makes them.

use std::sync::{Arc, Mutex, PoisonError};

use openssl::ssl::{Ssl, SslContext, SslSession};
use serde::Serialize;
use warifu_model::{Aead, CipherSuite, Keyword, Session, TlsVersion};

use crate::context::{ClientContext, ClientCredentials, server_context};
use crate::error::Error;
use crate::ffi::{self, Content, Watch};
use crate::party::{Exchange, From, Party};
use crate::pki::Pki;
use crate::variant::Variant;

/// One message on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageRecord {
    /// Who sent it.
    pub from: From,
    /// IANA's name of the handshake message, or `ChangeCipherSpec`, `Alert`, `ApplicationData`.
    pub name: &'static str,
    /// How many records carry it.
    pub record_count: usize,
    /// Its length without any record layer (a handshake message's 4-byte header counts).
    pub handshake_bytes: usize,
    /// Its length on the wire with all record overhead.
    pub wire_bytes: usize,
    /// Length of the signature in it, whose DER form varies.
    pub signature_bytes: Option<usize>,
    /// Index of the write call with its first byte, in [`Recording::writes`].
    pub first_write: usize,
    /// Index of the write call with its last byte.
    pub last_write: usize,
}

/// One write call below libssl: bytes that left together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WriteRecord {
    /// Who wrote.
    pub from: From,
    /// Bytes in the call.
    pub bytes: usize,
    /// Which wake-up of either party it belongs to, counted over both from 0.
    pub flight: usize,
}

/// A whole exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// Messages in the order in which they were sent.
    pub messages: Vec<MessageRecord>,
    /// Write calls in the same order.
    pub writes: Vec<WriteRecord>,
    /// Whether an earlier session was taken up.
    pub resumed: bool,
    /// Whether early data was sent and taken.
    pub early_data_accepted: bool,
}

impl Recording {
    /// Bytes that one end wrote.
    pub fn bytes_from(&self, from: From) -> usize {
        self.writes.iter().filter(|write| write.from == from).map(|write| write.bytes).sum()
    }
}

/// Runs the variant with the default [`Exchange`] and gives its messages in flight order.
pub fn record(variant: &Variant, pki: &Pki) -> Result<Vec<MessageRecord>, Error> {
    Ok(record_exchange(variant, pki, &Exchange::default())?.messages)
}

/// Runs the variant over pipes in memory. A variant that resumes first makes
/// a full connection, which is not recorded.
pub fn record_exchange(
    variant: &Variant,
    pki: &Pki,
    exchange: &Exchange,
) -> Result<Recording, Error> {
    let bench = Pair::new(variant, pki)?;
    let session =
        if variant.session.is_resumed() { Some(bench.first_session(exchange)?) } else { None };
    bench.record(exchange, session.as_ref())
}

/// Contexts of both ends for one variant.
pub struct Pair {
    client: ClientContext,
    server: SslContext,
}

impl Pair {
    /// Sets up both ends.
    pub fn new(variant: &Variant, pki: &Pki) -> Result<Self, Error> {
        let credentials = ClientCredentials::from_pki(pki);
        Ok(Self {
            client: ClientContext::new(variant, &credentials)?,
            server: server_context(variant, pki)?,
        })
    }

    /// The choices of both ends.
    pub fn variant(&self) -> &Variant {
        self.client.variant()
    }

    /// Makes a full connection and gives its session.
    pub fn first_session(&self, exchange: &Exchange) -> Result<SslSession, Error> {
        let mut client = Party::client(self.client.first()?, exchange.clone(), false)?;
        let mut server = Party::server(Ssl::new(&self.server)?, exchange.clone(), false)?;
        run(&mut client, &mut server, |_, _| {})?;
        client.session().ok_or_else(|| Error::Tls("the server gave no session".into()))
    }

    /// The two parties of a measured connection, each watched if a watch is given.
    pub fn parties(
        &self,
        exchange: &Exchange,
        session: Option<&SslSession>,
        watches: Option<[Arc<dyn Watch>; 2]>,
    ) -> Result<(Party, Party), Error> {
        let early = self.variant().session == Session::EarlyData;
        let mut client = self.client.measured(session)?;
        let mut server = Ssl::new(&self.server)?;
        if let Some([of_client, of_server]) = watches {
            ffi::watch(&mut client, of_client, true)?;
            ffi::watch(&mut server, of_server, true)?;
        }
        Ok((
            Party::client(client, exchange.clone(), early)?,
            Party::server(server, exchange.clone(), early)?,
        ))
    }

    fn record(
        &self,
        exchange: &Exchange,
        session: Option<&SslSession>,
    ) -> Result<Recording, Error> {
        let tallies =
            [From::Client, From::Server].map(|from| Tally::new(from, self.variant().cipher_suite));
        let watches = [0, 1].map(|end| tallies[end].clone() as Arc<dyn Watch>);
        let (mut client, mut server) = self.parties(exchange, session, Some(watches))?;
        let mut recording = Recording {
            messages: Vec::new(),
            writes: Vec::new(),
            resumed: false,
            early_data_accepted: false,
        };
        let mut flight = 0;
        run(&mut client, &mut server, |from, writes| {
            let tally = &tallies[usize::from(from == From::Server)];
            let first = recording.writes.len();
            recording.writes.extend(writes.iter().map(|write| WriteRecord {
                from,
                bytes: write.len(),
                flight,
            }));
            recording.messages.extend(tally.take(first, writes));
            flight += 1;
        })?;
        recording.resumed = client.ssl().session_reused();
        recording.early_data_accepted = ffi::early_data_accepted(client.ssl());
        if recording.resumed != self.variant().is_reused() {
            return Err(Error::Tls(format!(
                "session is {}, but the server {} an earlier one",
                self.variant().session.name(),
                if recording.resumed { "took up" } else { "refused" }
            )));
        }
        Ok(recording)
    }
}

/// Steps both parties by turns until neither has anything to say, and shows what each wrote.
pub(crate) fn run(
    client: &mut Party,
    server: &mut Party,
    mut wrote: impl FnMut(From, &[Vec<u8>]),
) -> Result<(), Error> {
    client.wake(&mut ())?;
    loop {
        let flight = client.take_writes();
        if flight.is_empty() {
            break;
        }
        wrote(From::Client, &flight);
        flight.iter().for_each(|bytes| server.feed(bytes));
        server.wake(&mut ())?;
        let flight = server.take_writes();
        if flight.is_empty() {
            break;
        }
        wrote(From::Server, &flight);
        flight.iter().for_each(|bytes| client.feed(bytes));
        client.wake(&mut ())?;
    }
    if client.is_done() && server.is_done() {
        Ok(())
    } else {
        Err(Error::Tls("the exchange ended before both sides were done".into()))
    }
}

/// Counts what one end sends, from the message callback.
struct Tally {
    from: From,
    messages: Mutex<Messages>,
}

/// The messages of one direction, as the message callback tells of them.
#[derive(Debug)]
pub(crate) struct Messages {
    tls: TlsVersion,
    /// What protection adds to a record's content.
    overhead_bytes: usize,
    pub(crate) all: Vec<Counted>,
    /// Records whose message has not been reported yet; application data never is.
    records: usize,
    wire_bytes: usize,
    /// What the last record holds.
    plain_bytes: usize,
}

/// A message that was counted. One that shares its record with the message before has no bytes on
/// the wire of its own; OpenSSL sends none such.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) name: &'static str,
    record_count: usize,
    handshake_bytes: usize,
    pub(crate) wire_bytes: usize,
    signature_bytes: Option<usize>,
}

const RECORD_HEADER_BYTES: usize = 5;
const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;
/// Every AEAD of the vocabulary has a tag of 16 bytes.
const TAG_BYTES: usize = 16;

/// What a suite adds to a record's content, without the record header: the tag, and in
/// TLS 1.3 the inner content type (RFC 8446 section 5.2), in TLS 1.2 with GCM the explicit
/// nonce (RFC 5288 section 3), with ChaCha20 nothing more (RFC 7905 section 2).
pub const fn record_overhead_bytes(suite: CipherSuite) -> usize {
    match (suite.tls(), suite.aead()) {
        (TlsVersion::Tls13, _) => TAG_BYTES + 1,
        (TlsVersion::Tls12, Aead::ChaCha20Poly1305) => TAG_BYTES,
        (TlsVersion::Tls12, Aead::Aes128Gcm | Aead::Aes256Gcm) => TAG_BYTES + 8,
    }
}

impl Watch for Tally {
    fn message(&self, sent: bool, content: Content, bytes: &[u8]) {
        if sent {
            self.messages.lock().unwrap_or_else(PoisonError::into_inner).note(content, bytes);
        }
    }
}

impl Tally {
    fn new(from: From, suite: CipherSuite) -> Arc<Self> {
        Arc::new(Self { from, messages: Mutex::new(Messages::new(suite, 0)) })
    }

    /// The messages of a flight, matched to its write calls by their place in the stream.
    fn take(&self, first_write: usize, writes: &[Vec<u8>]) -> Vec<MessageRecord> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ends = Vec::new();
        let mut total = 0;
        for write in writes {
            total += write.len();
            ends.push(total);
        }
        let write_of = |byte: usize| first_write + ends.partition_point(|&end| end <= byte);
        let mut at = 0;
        messages
            .all
            .drain(..)
            .map(|sent| {
                let start = at;
                at += sent.wire_bytes;
                MessageRecord {
                    from: self.from,
                    name: sent.name,
                    record_count: sent.record_count,
                    handshake_bytes: sent.handshake_bytes,
                    wire_bytes: sent.wire_bytes,
                    signature_bytes: sent.signature_bytes,
                    first_write: write_of(start),
                    last_write: write_of(at.saturating_sub(1)),
                }
            })
            .collect()
    }
}

impl Messages {
    /// None yet, with room for `expected`.
    pub(crate) fn new(suite: CipherSuite, expected: usize) -> Messages {
        Messages {
            tls: suite.tls(),
            overhead_bytes: record_overhead_bytes(suite),
            all: Vec::with_capacity(expected),
            records: 0,
            wire_bytes: 0,
            plain_bytes: 0,
        }
    }

    /// What the callback says next of this direction.
    pub(crate) fn note(&mut self, content: Content, bytes: &[u8]) {
        match content {
            Content::RecordHeader => {
                if let Some(length) = record_length(bytes) {
                    self.records += 1;
                    self.wire_bytes += RECORD_HEADER_BYTES + length;
                    self.plain_bytes = length.saturating_sub(self.overhead_bytes);
                    match (bytes[0], self.tls) {
                        // TLS 1.3 throws a received one away without reporting it (RFC 8446
                        // section 5; ssl3_get_record in ssl/record/ssl3_record.c, OpenSSL 3.0).
                        (CHANGE_CIPHER_SPEC, _) => self.flush("ChangeCipherSpec", length, None),
                        // A TLS 1.3 record says 23 outside whatever it holds; the type inside
                        // is reported next.
                        (APPLICATION_DATA, TlsVersion::Tls12) => self.flush_application_data(),
                        _ => {}
                    }
                }
            }
            Content::InnerType if bytes == [APPLICATION_DATA] => self.flush_application_data(),
            Content::Handshake => {
                let name = message_name(bytes);
                let signature = signature_bytes(name, bytes);
                self.flush(name, bytes.len(), signature);
            }
            Content::Alert => self.flush("Alert", bytes.len(), None),
            _ => {}
        }
    }

    fn flush(&mut self, name: &'static str, handshake_bytes: usize, signature: Option<usize>) {
        self.all.push(Counted {
            name,
            record_count: self.records,
            handshake_bytes,
            wire_bytes: self.wire_bytes,
            signature_bytes: signature,
        });
        self.records = 0;
        self.wire_bytes = 0;
    }

    fn flush_application_data(&mut self) {
        self.flush("ApplicationData", self.plain_bytes, None);
    }
}

fn record_length(header: &[u8]) -> Option<usize> {
    let high = *header.get(3)?;
    let low = *header.get(4)?;
    Some(usize::from(u16::from_be_bytes([high, low])))
}

/// IANA's names of handshake messages (TLS HandshakeType registry).
pub fn message_name(message: &[u8]) -> &'static str {
    match message.first() {
        Some(0) => "HelloRequest",
        Some(1) => "ClientHello",
        Some(2) => "ServerHello",
        Some(4) => "NewSessionTicket",
        Some(5) => "EndOfEarlyData",
        Some(8) => "EncryptedExtensions",
        Some(11) => "Certificate",
        Some(12) => "ServerKeyExchange",
        Some(13) => "CertificateRequest",
        Some(14) => "ServerHelloDone",
        Some(15) => "CertificateVerify",
        Some(16) => "ClientKeyExchange",
        Some(20) => "Finished",
        Some(24) => "KeyUpdate",
        _ => "Unknown",
    }
}

/// Length of the signature in a message, where it has one.
pub fn signature_bytes(name: &str, message: &[u8]) -> Option<usize> {
    let length_at = match name {
        // RFC 5246 section 7.4.8, RFC 8446 section 4.4.3: header 4, algorithm 2.
        "CertificateVerify" => 6,
        // RFC 8422 section 5.4: header 4, curve type 1 (a named curve), curve 2, point 1 + n,
        // algorithm 2. With a pre-shared key there is none, and a hint begins it (RFC 5489
        // section 2).
        "ServerKeyExchange" if message.get(4) == Some(&3) => {
            4 + 3 + 1 + usize::from(*message.get(7)?) + 2
        }
        _ => return None,
    };
    let length = [*message.get(length_at)?, *message.get(length_at + 1)?];
    Some(usize::from(u16::from_be_bytes(length)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use warifu_model::{Authentication, CertificateType};

    use super::*;
    use crate::testing::{pki, variants};

    fn recording(variant: &Variant) -> Recording {
        let pki = pki(variant.certificate, variant.chain_length);
        record_exchange(variant, pki, &Exchange::get("/", 20_000)).unwrap()
    }

    fn names(recording: &Recording, from: From) -> Vec<&'static str> {
        let sent = recording.messages.iter().filter(|message| message.from == from);
        sent.map(|message| message.name).collect()
    }

    fn some(tls: TlsVersion, session: Session, authentication: Authentication) -> Variant {
        variants()
            .into_iter()
            .find(|variant| {
                (variant.tls, variant.session, variant.authentication)
                    == (tls, session, authentication)
            })
            .unwrap()
    }

    /// Every combination that the vocabulary allows is accepted by both ends, resumes if it says
    /// so, and its messages and its writes are the same bytes.
    #[test]
    fn every_variant_completes_with_equal_byte_counts() {
        let all = variants();
        assert_eq!(all.len(), 448);
        for variant in &all {
            let recording = recording(variant);
            assert_eq!(recording.resumed, variant.is_reused(), "{variant:?}");
            let early = variant.session == Session::EarlyData;
            assert_eq!(recording.early_data_accepted, early, "{variant:?}");
            for from in [From::Client, From::Server] {
                let sent = recording.messages.iter().filter(|message| message.from == from);
                let wire: usize = sent.clone().map(|message| message.wire_bytes).sum();
                assert_eq!(wire, recording.bytes_from(from), "{variant:?}");
                for message in sent {
                    check_message(variant, message);
                    assert!(message.first_write <= message.last_write, "{message:?}");
                    assert_eq!(recording.writes[message.first_write].from, from, "{message:?}");
                    assert_eq!(recording.writes[message.last_write].from, from, "{message:?}");
                }
            }
        }
    }

    /// Record headers and protection are all that a message has on the wire besides itself.
    fn check_message(variant: &Variant, message: &MessageRecord) {
        let clear = match (variant.tls, message.name) {
            (_, "ChangeCipherSpec" | "ClientHello" | "ServerHello") => true,
            (TlsVersion::Tls12, name) => !matches!(name, "Finished" | "ApplicationData" | "Alert"),
            (TlsVersion::Tls13, _) => false,
        };
        let each = RECORD_HEADER_BYTES
            + if clear { 0 } else { record_overhead_bytes(variant.cipher_suite) };
        let overhead = message.record_count * each;
        assert_eq!(message.wire_bytes, message.handshake_bytes + overhead, "{message:?}");
        let signed = matches!(message.name, "CertificateVerify" | "ServerKeyExchange");
        match (message.signature_bytes, variant.certificate) {
            (None, _) => assert!(!signed || variant.psk.is_some(), "{message:?}"),
            (Some(256), CertificateType::Rsa2048) => assert!(signed),
            // Two integers of at most 33 bytes with their headers; a short one is rare.
            (Some(64..=72), CertificateType::EcdsaSecp256r1) => assert!(signed),
            (Some(_), _) => panic!("{message:?}"),
        }
    }

    #[test]
    fn message_order_follows_the_rfcs() {
        // RFC 8446 section 2, with OpenSSL's two tickets and its change_cipher_spec.
        let full = recording(&some(TlsVersion::Tls13, Session::Full, Authentication::Mutual));
        assert_eq!(
            names(&full, From::Server),
            [
                "ServerHello",
                "ChangeCipherSpec",
                "EncryptedExtensions",
                "CertificateRequest",
                "Certificate",
                "CertificateVerify",
                "Finished",
                "NewSessionTicket",
                "NewSessionTicket",
                "ApplicationData",
                "ApplicationData",
                "Alert"
            ]
        );
        let early = recording(&some(TlsVersion::Tls13, Session::EarlyData, Authentication::Server));
        assert_eq!(
            names(&early, From::Client),
            [
                "ClientHello",
                "ChangeCipherSpec",
                "ApplicationData",
                "EndOfEarlyData",
                "Finished",
                "Alert"
            ]
        );
        // RFC 5246 section 7.3 and RFC 5077 section 3.1.
        let old = recording(&some(TlsVersion::Tls12, Session::Full, Authentication::Mutual));
        assert_eq!(
            names(&old, From::Client),
            [
                "ClientHello",
                "Certificate",
                "ClientKeyExchange",
                "CertificateVerify",
                "ChangeCipherSpec",
                "Finished",
                "ApplicationData",
                "Alert"
            ]
        );
    }

    /// Without a key share in ServerHello there was no (EC)DHE (RFC 8446 section 4.2.8).
    #[test]
    fn psk_ke_sends_no_key_share() {
        let hello = |session| {
            let recording = recording(&some(TlsVersion::Tls13, session, Authentication::Server));
            let hello = recording.messages.iter().find(|message| message.name == "ServerHello");
            hello.unwrap().handshake_bytes
        };
        // Extension header, group, length, uncompressed point.
        assert_eq!(hello(Session::PskDheKe) - hello(Session::PskKe), 4 + 2 + 2 + 65);
    }

    #[test]
    fn inconsistent_variants_are_refused() {
        let allowed: HashSet<Variant> = variants().into_iter().collect();
        let mut wrong = some(TlsVersion::Tls13, Session::Full, Authentication::Server);
        wrong.session = Session::Ticket;
        assert!(!allowed.contains(&wrong));
        let error = record(&wrong, pki(wrong.certificate, 1)).unwrap_err().to_string();
        assert!(error.starts_with("session is ticket: "), "{error}");
        wrong.session = Session::Full;
        wrong.cipher_suite = CipherSuite::TlsEcdheRsaWithAes128GcmSha256;
        let error = record(&wrong, pki(wrong.certificate, 1)).unwrap_err().to_string();
        assert!(error.contains("TLS 1.3 lacks it; choose one of TLS_AES_128_GCM"), "{error}");
    }
}
