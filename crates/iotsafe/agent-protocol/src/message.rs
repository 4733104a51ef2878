// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages between the agent and its callers, and their framing.
//!
//! A frame is a length of 4 bytes, most significant first, and that many bytes: one byte
//! [`VERSION`], then a [`Request`] or a [`Reply`] in postcard's encoding. A caller sends a request
//! and waits for the reply with the same number. A caller that gives up closes the connection,
//! which discards a late reply; volatile keys that were lent to a connection are freed with it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warifu_card::crypto::Hash;
use warifu_iotsafe_client::{Inventory, PinState, SignInput, TokenError, TokenInfo};
use zeroize::Zeroizing;

/// The version of the messages; others are refused.
pub const VERSION: u8 = 2;
/// The longest frame without its length, bytes.
pub const FRAME_MAX_BYTES: usize = 1 << 20;
/// The longest request without its length, bytes: what the agent gives a caller memory for.
pub const REQUEST_MAX_BYTES: usize = 1 << 14;
/// The most random bytes of one request. The card is another caller's after every 256.
pub const RANDOM_MAX_BYTES: usize = 4096;
/// The longest message that the card hashes, bytes: 35 commands, which fit into one attempt. The
/// caller hashes longer ones itself.
pub const MESSAGE_MAX_BYTES: usize = 8192;
/// The most bytes of a token, and of a request for one.
pub const JWT_MAX_BYTES: usize = 8192;

/// A request of a caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the caller; the reply has the same.
    pub number: u32,
    /// The card's name in the agent's configuration; empty for its first.
    pub card: String,
    /// How long the caller waits.
    pub timeout: Duration,
    /// The operation.
    pub call: Call,
}

/// The operations of the agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// [`Token::info`](warifu_iotsafe_client::Token::info).
    Info,
    /// [`Token::pin_state`](warifu_iotsafe_client::Token::pin_state).
    PinState,
    /// [`Token::verify_pin`](warifu_iotsafe_client::Token::verify_pin).
    VerifyPin(Zeroizing<Vec<u8>>),
    /// [`Token::objects`](warifu_iotsafe_client::Token::objects).
    Objects,
    /// [`Token::read_file`](warifu_iotsafe_client::Token::read_file), of the file with this id.
    ReadFile(Vec<u8>),
    /// [`Token::read_public_key`](warifu_iotsafe_client::Token::read_public_key).
    ReadPublicKey(Vec<u8>),
    /// [`Token::sign`](warifu_iotsafe_client::Token::sign).
    Sign {
        /// The key's id.
        key: Vec<u8>,
        /// What to sign or verify.
        input: Input,
    },
    /// [`Token::verify`](warifu_iotsafe_client::Token::verify).
    Verify {
        /// The public key's id.
        key: Vec<u8>,
        /// What to sign or verify.
        input: Input,
        /// r and s, 64 bytes.
        signature: Vec<u8>,
    },
    /// [`Token::derive`](warifu_iotsafe_client::Token::derive).
    Derive {
        /// The key's id.
        key: Vec<u8>,
        /// 04, X, Y.
        peer: Vec<u8>,
    },
    /// [`Token::generate`](warifu_iotsafe_client::Token::generate).
    Generate(Vec<u8>),
    /// [`Token::give_back`](warifu_iotsafe_client::Token::give_back).
    GiveBack(Vec<u8>),
    /// [`Token::random`](warifu_iotsafe_client::Token::random), at most [`RANDOM_MAX_BYTES`].
    Random(u32),
    /// A JSON Web Token (RFC 7519) signed with ES256.
    Jwt(JwtRequest),
    /// The metrics in Prometheus' format.
    Metrics,
    /// The agent's state, JSON.
    Status,
    /// Stops the agent.
    Stop,
}

/// The input of a signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Whether `bytes` are a message for the card to hash, or a digest.
    pub is_message: bool,
    /// [`Hash::bit`].
    pub hash: u8,
    /// The digest or the message.
    pub bytes: Vec<u8>,
}

/// A request for a JSON Web Token. Equal requests share one until its renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JwtRequest {
    /// The key's id or label; empty for the first key that signs on secp256r1.
    pub key: String,
    /// `aud`; omitted if empty.
    pub audience: Vec<String>,
    /// `iss`.
    pub issuer: Option<String>,
    /// `sub`.
    pub subject: Option<String>,
    /// `kid` of the header.
    pub key_id: Option<String>,
    /// From `iat` to `exp`, s.
    pub lifetime_s: u32,
    /// Other claims: names, and values as JSON.
    pub claims: BTreeMap<String, String>,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The number of the request.
    pub number: u32,
    /// The result.
    pub answer: Result<Answer, TokenError>,
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Done, without a value.
    Done,
    /// To [`Call::Info`].
    Info(TokenInfo),
    /// To [`Call::PinState`].
    PinState(PinState),
    /// To [`Call::Objects`].
    Objects(Inventory),
    /// A file, a point, a signature, a shared secret, random bytes.
    Bytes(Zeroizing<Vec<u8>>),
    /// To [`Call::Verify`].
    Matches(bool),
    /// To [`Call::Generate`].
    Pair {
        /// The id of the public key.
        public_id: Option<Vec<u8>>,
        /// 04, X, Y.
        point: Vec<u8>,
    },
    /// To [`Call::Jwt`].
    Jwt {
        /// The token in its compact form.
        token: String,
        /// `exp`, s since the Unix epoch.
        expires_s: u64,
    },
    /// To [`Call::Metrics`] and [`Call::Status`].
    Text(String),
}

impl Call {
    /// Its name in traces and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Call::Info => "info",
            Call::PinState => "pin_state",
            Call::VerifyPin(_) => "verify_pin",
            Call::Objects => "objects",
            Call::ReadFile(_) => "read_file",
            Call::ReadPublicKey(_) => "read_public_key",
            Call::Sign { .. } => "sign",
            Call::Verify { .. } => "verify",
            Call::Derive { .. } => "derive",
            Call::Generate(_) => "generate",
            Call::GiveBack(_) => "give_back",
            Call::Random(_) => "random",
            Call::Jwt(_) => "token",
            Call::Metrics => "metrics",
            Call::Status => "status",
            Call::Stop => "stop",
        }
    }
}

/// The name alone: no PINs, messages or secrets.
impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({})", self.name())
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Answer::Done => "done",
            Answer::Info(_) => "info",
            Answer::PinState(state) => return write!(f, "Answer({state:?})"),
            Answer::Objects(_) => "objects",
            Answer::Bytes(_) => "bytes",
            Answer::Matches(matches) => return write!(f, "Answer({matches})"),
            Answer::Pair { .. } => "pair",
            Answer::Jwt { .. } => "token",
            Answer::Text(_) => "text",
        };
        write!(f, "Answer({name})")
    }
}

/// A message longer than [`MESSAGE_MAX_BYTES`] becomes its digest, of which the signature is the
/// same.
impl From<SignInput<'_>> for Input {
    fn from(input: SignInput<'_>) -> Input {
        let (is_message, hash, bytes) = match input {
            SignInput::Digest(hash, digest) => (false, hash, digest.to_vec()),
            SignInput::Message(hash, message) if message.len() > MESSAGE_MAX_BYTES => {
                (false, hash, hash.digest(message))
            }
            SignInput::Message(hash, message) => (true, hash, message.to_vec()),
        };
        Input { is_message, hash: hash.bit(), bytes }
    }
}

impl JwtRequest {
    /// How much memory it takes, bytes, about.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let one = |text: &String| size_of::<String>() + text.len();
        let texts = self.audience.iter().chain(&self.issuer).chain(&self.subject);
        let texts = texts.chain(&self.key_id).chain([&self.key]).map(one).sum::<usize>();
        texts + self.claims.iter().map(|(name, value)| one(name) + one(value)).sum::<usize>()
    }
}

impl Input {
    /// None for an unknown hash, a digest of the wrong length, or a message that is too long.
    #[must_use]
    pub fn as_sign_input(&self) -> Option<SignInput<'_>> {
        let hash = Hash::ALL.into_iter().find(|hash| hash.bit() == self.hash)?;
        if self.is_message {
            let short = self.bytes.len() <= MESSAGE_MAX_BYTES;
            return short.then_some(SignInput::Message(hash, &self.bytes));
        }
        (self.bytes.len() == hash.length_bytes()).then_some(SignInput::Digest(hash, &self.bytes))
    }
}

/// Encodes a message as a frame with its length. None if it is too long.
#[must_use]
pub fn encode(message: &impl Serialize) -> Option<Zeroizing<Vec<u8>>> {
    // One allocation for all but long messages: a growing vector would leave copies behind, of a
    // PIN perhaps, that are not overwritten.
    let mut frame = Zeroizing::new(Vec::with_capacity(4096));
    frame.extend_from_slice(&[0, 0, 0, 0, VERSION]);
    *frame = postcard::to_extend(message, std::mem::take(&mut *frame)).ok()?;
    let length = frame.len() - 4;
    if length > FRAME_MAX_BYTES {
        return None;
    }
    frame[..4].copy_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    Some(frame)
}

/// Decodes the bytes of a frame after its length. None for another version, and for bytes that are
/// not exactly one message.
#[must_use]
pub fn decode<T: for<'a> Deserialize<'a>>(frame: &[u8]) -> Option<T> {
    let (&VERSION, body) = frame.split_first()? else { return None };
    let (message, rest) = postcard::take_from_bytes(body).ok()?;
    rest.is_empty().then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use warifu_card::StatusWord;

    fn round_trip<T: Serialize + for<'a> Deserialize<'a>>(message: &T) -> T {
        let frame = encode(message).unwrap();
        assert_eq!(u32::from_be_bytes(*frame.first_chunk().unwrap()) as usize, frame.len() - 4);
        decode(&frame[4..]).unwrap()
    }

    #[test]
    fn message_round_trip() {
        let pin = Zeroizing::new(b"1234".to_vec());
        let input = Input::from(SignInput::Digest(Hash::Sha256, &[7; 32]));
        for call in [
            Call::VerifyPin(pin),
            Call::Sign { key: vec![1], input },
            Call::Jwt(JwtRequest { audience: vec!["a".to_owned()], ..JwtRequest::default() }),
        ] {
            let timeout = Duration::from_millis(1500);
            let request = Request { number: 7, card: "meter".to_owned(), timeout, call };
            assert_eq!(round_trip(&request), request);
        }
        for error in [
            TokenError::Status { command: "VERIFY".into(), sw: StatusWord::UNKNOWN },
            TokenError::Answer { command: "READ FILE".into(), what: "is short".into() },
            TokenError::PinWrong { tries_left: Some(2) },
        ] {
            let reply = Reply { number: 7, answer: Err(error) };
            assert_eq!(round_trip(&reply), reply);
        }
    }

    #[test]
    fn other_versions_and_trailing_bytes_are_refused() {
        let frame = encode(&Reply { number: 1, answer: Ok(Answer::Done) }).unwrap();
        let mut body = frame[4..].to_vec();
        body[0] += 1;
        assert_eq!(decode::<Reply>(&body), None);
        let longer = [&frame[4..], &[0]].concat();
        assert_eq!(decode::<Reply>(&longer), None);
        assert_eq!(encode(&vec![0_u8; FRAME_MAX_BYTES]), None);
    }

    #[test]
    fn long_message_becomes_its_digest() {
        let message = [7; MESSAGE_MAX_BYTES + 1];
        let short = Input::from(SignInput::Message(Hash::Sha384, &message[1..]));
        assert!(short.is_message && short.as_sign_input().is_some());
        let long = Input::from(SignInput::Message(Hash::Sha384, &message));
        assert!(!long.is_message && long.bytes == Hash::Sha384.digest(&message));
        let refused = Input { is_message: true, bytes: message.to_vec(), ..short };
        assert_eq!(refused.as_sign_input(), None);
        let request = Request {
            number: 1,
            card: String::new(),
            timeout: Duration::ZERO,
            call: Call::Sign { key: vec![1; 20], input: long },
        };
        assert!(encode(&request).unwrap().len() <= REQUEST_MAX_BYTES);
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let call = Call::VerifyPin(Zeroizing::new(b"1234".to_vec()));
        assert_eq!(format!("{call:?}"), "Call(verify_pin)");
        let answer = Answer::Bytes(Zeroizing::new(vec![0xab; 32]));
        assert_eq!(format!("{answer:?}"), "Answer(bytes)");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            let _ = decode::<Request>(&bytes);
            let _ = decode::<Reply>(&bytes);
        }
    }
}
