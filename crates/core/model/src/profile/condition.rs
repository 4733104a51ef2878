// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The conditions under which a device profile's figure holds.

use std::fmt;

use toml::Value;

use crate::case::{
    Aead, Authentication, CertificateType, DdsCrypto, Group, KeyShare, PskMode, Session, Stack,
    Tls, TlsVersion,
};
use crate::keyword::{Keyword, one_of};
use crate::reader::{Section, show};

/// A set of allowed values for each choice of a stack, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    allowed: [u8; CHOICES.len()],
}

/// A choice in which a stack differs from a condition.
#[derive(Debug)]
pub(crate) struct Mismatch {
    choice: usize,
    allowed: u8,
}

/// The choices that a cost may depend on: the key, its words, and where the stack has it.
const CHOICES: [Spec; 10] = [
    of_tls("tls", words::<TlsVersion>, |tls| position(tls.version)),
    of_tls("session", words::<Session>, |tls| position(tls.session)),
    of_tls("authentication", words::<Authentication>, |tls| position(tls.authentication)),
    of_tls("group", words::<Group>, |tls| position(tls.group)),
    of_tls("certificate", words::<CertificateType>, |tls| position(tls.certificate)),
    of_tls("aead", words::<Aead>, |tls| position(tls.cipher_suite.aead())),
    of_tls("key_share", words::<KeyShare>, |tls| position(tls.key_share)),
    of_tls("chain_length", || vec!["1", "2", "3"], |tls| usize::from(tls.chain_length) - 1),
    Spec {
        key: "psk_mode",
        words: words::<PskMode>,
        of: Of::Stack(|stack| Some(position(stack.tls()?.psk?.mode))),
    },
    Spec {
        key: "crypto",
        words: words::<DdsCrypto>,
        of: Of::Stack(|stack| Some(position(stack.dds()?.crypto))),
    },
];

/// A choice that a cost may depend on, in the order of [`CHOICES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Tls,
    Session,
    Authentication,
    Group,
    Certificate,
    Aead,
    KeyShare,
    ChainLength,
    PskMode,
    Crypto,
}

struct Spec {
    key: &'static str,
    words: fn() -> Vec<&'static str>,
    of: Of,
}

/// Where a stack has a choice, as the index of its word.
enum Of {
    Tls(fn(&Tls) -> usize),
    Stack(fn(&Stack) -> Option<usize>),
}

const fn of_tls(
    key: &'static str,
    words: fn() -> Vec<&'static str>,
    of: fn(&Tls) -> usize,
) -> Spec {
    Spec { key, words, of: Of::Tls(of) }
}

impl Choice {
    /// Every one, in order.
    pub(crate) const ALL: [Choice; CHOICES.len()] = [
        Choice::Tls,
        Choice::Session,
        Choice::Authentication,
        Choice::Group,
        Choice::Certificate,
        Choice::Aead,
        Choice::KeyShare,
        Choice::ChainLength,
        Choice::PskMode,
        Choice::Crypto,
    ];

    /// Its words.
    pub(crate) fn words(self) -> Vec<&'static str> {
        (CHOICES[self as usize].words)()
    }

    /// The word under which conditions and studies have it.
    pub(crate) const fn key(self) -> &'static str {
        CHOICES[self as usize].key
    }

    /// `certificate = "rsa-2048"`: what a stack has of it.
    pub(crate) fn of_stack(self, stack: &Stack) -> String {
        let spec = &CHOICES[self as usize];
        let word = spec.of(stack).and_then(|index| (spec.words)().get(index).copied());
        spec.assignment(word.unwrap_or_default())
    }
}

impl Spec {
    /// `certificate = "rsa-2048"`
    fn assignment(&self, word: &str) -> String {
        format!("{} = {}", self.key, self.quoted(word))
    }

    /// The word as TOML has it.
    fn quoted(&self, word: &str) -> String {
        if self.key == "chain_length" { word.to_owned() } else { format!("\"{word}\"") }
    }

    fn of(&self, stack: &Stack) -> Option<usize> {
        match self.of {
            Of::Tls(of) => stack.tls().map(of),
            Of::Stack(of) => of(stack),
        }
    }
}

impl Condition {
    /// Holds for every stack.
    pub(crate) const ALWAYS: Condition = Condition { allowed: [u8::MAX; CHOICES.len()] };

    /// The condition that holds for stacks with this one's choices alone. A stack without TLS, or
    /// that is not of DDS, has none of its choices, and meets no condition on one.
    pub(crate) fn point(stack: &Stack) -> Condition {
        let bit = |index: usize| CHOICES[index].of(stack).map_or(0, |word| 1 << (word & 7));
        let mut point = Condition { allowed: std::array::from_fn(bit) };
        if let Some((tls, psk)) = stack.tls().and_then(|tls| Some((tls, tls.psk?))) {
            // No figure of a handshake with certificates is one of a handshake by a key from
            // outside. To TLS 1.3 that key and a ticket's are the same (RFC 8446 section 2.2), so a
            // figure of a resumption without client certificate stands for it too, unless there is
            // one with psk_mode; TLS 1.2 has no such counterpart.
            let by_ticket = match (tls.version, psk.mode) {
                (TlsVersion::Tls12, _) => None,
                (TlsVersion::Tls13, PskMode::PskDheKe) => Some(Session::PskDheKe),
                (TlsVersion::Tls13, PskMode::PskKe) => Some(Session::PskKe),
            };
            point.allowed[Choice::Session as usize] =
                by_ticket.map_or(0, |session| 1 << position(session));
            if by_ticket.is_some() {
                let server = 1 << position(Authentication::Server);
                point.allowed[Choice::Authentication as usize] |= server;
            }
        }
        point
    }

    /// Reads `when = { tls = "1.3", session = ["full", "psk_dhe_ke"] }`.
    pub(crate) fn read(section: &Section<'_>) -> Condition {
        let mut condition = Condition::ALWAYS;
        for (allowed, choice) in condition.allowed.iter_mut().zip(&CHOICES) {
            if let Some(bits) = section.read(choice.key, |value| bits(choice, value)) {
                *allowed = bits;
            }
        }
        section.refuse_unknown();
        condition
    }

    /// Adds that a choice has one of these words; `None` where the key or a word is not known, the
    /// key stands for the second time, or there is no word.
    pub(super) fn allow<'a>(
        &mut self,
        key: &str,
        words: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Option<()> {
        let index = CHOICES.iter().position(|choice| choice.key == key)?;
        let known = (CHOICES[index].words)();
        let mut bits = 0;
        for word in words {
            let word = word?;
            bits |= 1 << known.iter().position(|known| *known == word)?;
        }
        let first = self.allowed[index] == u8::MAX;
        self.allowed[index] = bits;
        (first && bits != 0).then_some(())
    }

    pub(crate) fn holds(&self, point: &Condition) -> bool {
        let mut both = self.allowed.iter().zip(&point.allowed);
        both.all(|(&allowed, bit)| allowed == u8::MAX || allowed & bit != 0)
    }

    /// Whether it says something about a choice: one word, several, or all there are.
    pub(crate) fn says(&self, choice: Choice) -> bool {
        self.allowed[choice as usize] != u8::MAX
    }

    /// How many choices it says something about.
    pub(crate) fn terms(&self) -> usize {
        self.allowed.iter().filter(|&&bits| bits != u8::MAX).count()
    }

    /// The choices in which a stack lies outside.
    pub(crate) fn mismatches(&self, point: &Condition) -> Vec<Mismatch> {
        let both = self.allowed.iter().zip(&point.allowed).enumerate();
        both.filter(|(_, (allowed, bit))| **allowed != u8::MAX && **allowed & **bit == 0)
            .map(|(choice, (&allowed, _))| Mismatch { choice, allowed })
            .collect()
    }
}

impl Mismatch {
    /// `stack.tls = "1.3"`: the first value that would do.
    pub(crate) fn hint(&self) -> String {
        let choice = &CHOICES[self.choice];
        let word = (choice.words)().get(self.allowed.trailing_zeros() as usize).copied();
        let word = word.unwrap_or_default();
        format!("stack.{}", choice.assignment(word))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.allowed.iter().all(|&bits| bits == 0) {
            return f.write_str("a stack without TLS");
        }
        let mut first = true;
        for (&bits, choice) in
            self.allowed.iter().zip(&CHOICES).filter(|(bits, _)| !matches!(**bits, 0 | u8::MAX))
        {
            let words = (choice.words)();
            let allowed = words.iter().enumerate().filter(|(index, _)| bits & (1 << index) != 0);
            let list: Vec<&str> = allowed.map(|(_, word)| *word).collect();
            write!(f, "{}{}={}", if first { "" } else { ", " }, choice.key, list.join("|"))?;
            first = false;
        }
        if first { f.write_str("every stack") } else { Ok(()) }
    }
}

/// One word, or a list of them.
fn bits(choice: &Spec, value: &Value) -> Result<u8, String> {
    let words = (choice.words)();
    let expected = || format!("expected {} or a list of them", one_of(&words));
    let one = |value: &Value| {
        let number;
        let word = match value {
            Value::String(text) => text,
            Value::Integer(value) => {
                number = value.to_string();
                &number
            }
            _ => return Err(expected()),
        };
        let index = words.iter().position(|known| known == word);
        index
            .map(|index| 1 << index)
            .ok_or_else(|| format!("{} is not known: {}", show(value), expected()))
    };
    match value {
        Value::Array(list) if list.is_empty() => Err(expected()),
        Value::Array(list) => list.iter().try_fold(0, |bits, value| Ok(bits | one(value)?)),
        single => one(single).map_err(|_| expected()),
    }
}

fn words<T: Keyword>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.name()).collect()
}

fn position<T: Keyword>(value: T) -> usize {
    T::ALL.iter().position(|known| *known == value).unwrap_or(0)
}
