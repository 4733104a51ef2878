// SPDX-License-Identifier: Apache-2.0 OR MIT
//! On which of a case's choices an operation's cost depends. An entry of a device profile that
//! says nothing of one of them answers nothing: it might be another algorithm's figure. Where a
//! figure was found not to depend on it, the entry lists all words.

use super::condition::Choice;
use crate::case::{PskMode, Session, Stack, TlsVersion};
use crate::keyword::Keyword;
use crate::operation::{DdsMessage, Direction, HandshakeMessage, Operation};

/// Choices, as bits by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Choices(u16);

impl Choices {
    const fn with(self, choice: Choice) -> Choices {
        Choices(self.0 | 1 << choice as u16)
    }

    const fn and(self, other: Choices) -> Choices {
        Choices(self.0 | other.0)
    }

    /// In their order.
    pub(super) fn iter(self) -> impl Iterator<Item = Choice> {
        Choice::ALL.into_iter().filter(move |&choice| self.0 & 1 << choice as u16 != 0)
    }
}

/// What an operation's cost depends on, in a version of TLS and a way to begin it.
///
/// | choice | because | operations |
/// |---|---|---|
/// | `tls` | the messages of both versions share names alone | those that both have |
/// | `session` | a PSK's binder, and the secrets that follow from it | ClientHello, ServerHello |
/// | `group` | a key pair and a shared secret | TLS 1.3's hellos, TLS 1.2's key exchange |
/// | `certificate` | signatures made and verified | received ones, and `sign` |
/// | `chain_length` | a signature verified for each | a received Certificate |
/// | `aead` | the cipher, and the hash of its suite | ApplicationData, Finished |
/// | `crypto` | the plugin | protections of DDS |
///
/// The rest of a message's work (its bytes copied, hashed and encrypted) is small beside these and
/// depends on its length. A ClientHello with a key share that lies ready is not made at all, so
/// nothing here depends on `key_share`; nor on `authentication`, which adds messages.
const fn table(operation: Operation, tls: TlsVersion, session: Session) -> Choices {
    use Direction::{Receive, Send};
    use HandshakeMessage::{
        ApplicationData, Certificate, CertificateVerify, ClientHello, ClientKeyExchange, Finished,
        ServerHello, ServerKeyExchange,
    };
    const NONE: Choices = Choices(0);
    let (direction, message) = match operation {
        Operation::Tls(_, direction, message) => (direction, message),
        Operation::Sign(_) => return NONE.with(Choice::Certificate),
        Operation::Dds(
            _,
            _,
            DdsMessage::Payload | DdsMessage::Submessage | DdsMessage::RtpsMessage,
        ) => return NONE.with(Choice::Crypto),
        _ => return NONE,
    };
    let tls_13 = matches!(tls, TlsVersion::Tls13);
    let version = if operation.is_of_both_versions() { NONE.with(Choice::Tls) } else { NONE };
    let hello_with_share =
        if tls_13 && session.has_key_exchange() { NONE.with(Choice::Group) } else { NONE };
    version.and(match (message, direction) {
        // A server that works on the client's share when it reads it does so here.
        (ClientHello | ServerHello, _) => NONE.with(Choice::Session).and(hello_with_share),
        (ServerKeyExchange, Receive) => NONE.with(Choice::Group).with(Choice::Certificate),
        (ServerKeyExchange, Send) | (ClientKeyExchange, _) => NONE.with(Choice::Group),
        (Certificate, Receive) => NONE.with(Choice::Certificate).with(Choice::ChainLength),
        (CertificateVerify, Receive) => NONE.with(Choice::Certificate),
        (ApplicationData | Finished, _) => NONE.with(Choice::Aead),
        _ => NONE,
    })
}

/// What an operation's cost depends on in a stack.
pub(super) fn choices(operation: Operation, stack: &Stack) -> Choices {
    match stack.tls() {
        Some(tls) => match tls.psk {
            Some(psk) => by_psk(operation, tls.version, psk.mode),
            None => table(operation, tls.version, tls.session),
        },
        None => table(operation, TlsVersion::Tls13, Session::Full),
    }
}

/// With a key from outside: to TLS 1.3 the same as a ticket's, with TLS 1.2 messages of their own.
const fn by_psk(operation: Operation, tls: TlsVersion, mode: PskMode) -> Choices {
    use HandshakeMessage::{ClientHello, ClientKeyExchange, ServerHello, ServerKeyExchange};
    match (tls, mode) {
        (TlsVersion::Tls13, PskMode::PskDheKe) => table(operation, tls, Session::PskDheKe),
        (TlsVersion::Tls13, PskMode::PskKe) => table(operation, tls, Session::PskKe),
        (TlsVersion::Tls12, mode) => match operation {
            Operation::Tls(_, _, ClientHello | ServerHello) => {
                Choices(0).with(Choice::Tls).with(Choice::PskMode)
            }
            Operation::Tls(_, _, ClientKeyExchange | ServerKeyExchange) => {
                let own = Choices(0).with(Choice::PskMode);
                if matches!(mode, PskMode::PskDheKe) { own.with(Choice::Group) } else { own }
            }
            _ => table(operation, tls, Session::Full),
        },
    }
}

/// All words of each choice that an operation's cost may depend on, in those versions of TLS and
/// ways to begin it that `of` asks for.
pub fn cost_choices(
    operation: Operation,
    of: impl Fn(TlsVersion, Session) -> bool,
) -> Vec<(&'static str, Vec<&'static str>)> {
    let ways = |&tls| Session::ALL.iter().map(move |&session| (tls, session));
    let fitting = TlsVersion::ALL.iter().flat_map(ways).filter(|(tls, session)| session.fits(*tls));
    let found = fitting
        .filter(|&(tls, session)| of(tls, session))
        .fold(Choices::default(), |all, (tls, session)| all.and(table(operation, tls, session)));
    found.iter().map(|choice| (choice.key(), choice.words())).collect()
}

/// The same in any: the condition of a figure that was found to depend on nothing.
pub fn every_choice(operation: Operation) -> Vec<(&'static str, Vec<&'static str>)> {
    cost_choices(operation, |_, _| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(operation: &str, tls: TlsVersion, session: Session) -> String {
        let found = table(operation.parse().unwrap(), tls, session);
        let names: Vec<&str> = found.iter().map(Choice::key).collect();
        names.join(" ")
    }

    #[test]
    fn choices_of_each_operation() {
        use Session::{Full, PskKe, Ticket};
        use TlsVersion::{Tls12, Tls13};
        for (operation, tls, session, expected) in [
            ("client.send.ClientHello", Tls13, Full, "tls session group"),
            ("client.send.ClientHello", Tls12, Ticket, "tls session"),
            ("client.receive.ServerHello", Tls13, PskKe, "tls session"),
            ("server.send.ServerHello", Tls13, Full, "tls session group"),
            ("client.receive.ServerKeyExchange", Tls12, Full, "group certificate"),
            ("client.send.ClientKeyExchange", Tls12, Full, "group"),
            ("client.receive.Certificate", Tls13, Full, "tls certificate chain_length"),
            ("server.send.Certificate", Tls13, Full, "tls"),
            ("client.receive.CertificateVerify", Tls13, Full, "tls certificate"),
            ("client.send.CertificateVerify", Tls13, Full, "tls"),
            ("client.receive.Finished", Tls13, Full, "tls aead"),
            ("client.send.ApplicationData", Tls12, Full, "aead"),
            ("client.receive.EncryptedExtensions", Tls13, Full, ""),
            ("client.sign", Tls13, Full, "certificate"),
            ("client.system.wake", Tls13, Full, ""),
            ("client.receive.CoapResponse", Tls13, Full, ""),
            ("client.send.DdsProtectedPayload", Tls13, Full, "crypto"),
            ("client.send.DdsSample", Tls13, Full, ""),
        ] {
            assert_eq!(names(operation, tls, session), expected, "{operation}");
        }
    }

    #[test]
    fn all_words_where_nothing_matters() {
        let hello = every_choice("client.send.ClientHello".parse().unwrap());
        let keys: Vec<&str> = hello.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["tls", "session", "group"]);
        assert_eq!(hello[2].1, ["secp256r1", "x25519"]);
        assert!(every_choice("client.system.write".parse().unwrap()).is_empty());
    }
}
