// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `csr`: a certificate request that the card signs with the commands that any client sends. The
//! card is that of a state file, or one that is being served.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use warifu_card::crypto::{Curve, Hash, Point};
use warifu_card::object::{SIGNATURE_ECDSA, slot};
use warifu_card::tlv::{self, tag};
use warifu_card::{AIDS, Command, StatusWord, ins, padded};
use zeroize::Zeroizing;

use crate::error::ServerError;
use crate::frame;
use crate::host::system_random;
use crate::personalise::change;
use crate::subject;
use crate::x509;

/// Signing mode (tag A1): the card gets the digest.
const PAD_AND_SIGN: u8 = 3;

/// A request for a certificate request.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Csr {
    /// The card's state file.
    #[serde(default)]
    pub state: Option<PathBuf>,
    /// The socket of a served card, instead.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// The subject: `CN=device-1,O=Example` (RFC 4514).
    pub subject: String,
    /// The PIN, if the card needs one.
    #[serde(default)]
    pub pin: Option<Zeroizing<String>>,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requested {
    /// In PEM.
    pub csr: String,
}

type Exchange<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Vec<u8>, ServerError>;

/// Makes a certificate request for the client's key.
///
/// # Errors
/// [`ServerError::Request`] with the status word of a refusal by the card; errors of the store.
pub fn csr(request: &Csr) -> Result<Requested, ServerError> {
    match (&request.state, &request.socket) {
        (_, Some(socket)) => {
            let gone = |error| ServerError::file(socket, error);
            let mut stream = UnixStream::connect(socket).map_err(|error| {
                ServerError::Missing(format!(
                    "{}: no card is served at this socket ({error}): start it with `warifu card \
                     serve`",
                    socket.display()
                ))
            })?;
            requested(request, &mut |apdu| {
                frame::write(&mut stream, apdu).map_err(gone)?;
                Ok(frame::read(&mut stream).map_err(gone)?.unwrap_or_default())
            })
        }
        (Some(state), None) => from_file(request, state),
        (None, None) => Err(ServerError::Request("no card: give state or socket".to_owned())),
    }
}

/// Under the card's lock, since a wrong PIN is counted.
fn from_file(request: &Csr, state: &Path) -> Result<Requested, ServerError> {
    let mut made = None;
    change(state, |card| {
        let mut rng = system_random();
        made = Some(requested(request, &mut |apdu| Ok(card.transmit(apdu, &mut rng).to_bytes())));
        Ok(())
    })?;
    made.unwrap_or_else(|| Err(ServerError::Request("no request was made".to_owned())))
}

fn requested(request: &Csr, exchange: Exchange<'_>) -> Result<Requested, ServerError> {
    // Before a PIN is counted or a slow card is used.
    let subject = subject::parse(&request.subject)?;
    ask(exchange, 0x00, ins::SELECT, [0x04, 0x0c], AIDS[0], "SELECT")?;
    if let Some(pin) = &request.pin {
        let digits = padded(pin).ok_or_else(|| {
            ServerError::Request("the PIN is none: expected 4 to 8 digits".to_owned())
        })?;
        ask(exchange, 0x80, ins::VERIFY, [0x00, 0x01], &*digits, "VERIFY")?;
    }
    let key = public_key(exchange)?;
    let csr = x509::certificate_request(subject, &key, |text| {
        signature(exchange, &Hash::Sha256.digest(text))
    })?;
    Ok(Requested { csr })
}

fn public_key(exchange: Exchange<'_>) -> Result<Point, ServerError> {
    let id = tlv::field(tag::PUBLIC_KEY_ID, &[slot::CLIENT_KEY]);
    let answer = ask(exchange, 0x80, ins::READ_PUBLIC_KEY, [0, 0], &id, "READ PUBLIC KEY")?;
    // 34 { 49 { 86 { 04 X Y } } }: the point is at the end. Its curve is the one that it lies on.
    let point = answer.get(answer.len().saturating_sub(65)..).unwrap_or_default();
    Curve::ALL.into_iter().find_map(|curve| curve.point(point)).ok_or_else(|| {
        ServerError::Request(
            "the card returned no public key on secp256r1 or brainpoolP256r1".to_owned(),
        )
    })
}

fn signature(exchange: Exchange<'_>, digest: &[u8]) -> Result<[u8; 64], ServerError> {
    let mut init = tlv::field(tag::PRIVATE_KEY_ID, &[slot::CLIENT_KEY]);
    tlv::push(&mut init, tag::MODE, &[PAD_AND_SIGN]);
    tlv::push(&mut init, tag::HASH, &[0x00, Hash::Sha256.bit()]);
    tlv::push(&mut init, tag::SIGNATURE, &[SIGNATURE_ECDSA]);
    let name = "COMPUTE SIGNATURE";
    let (_, sw) = send(exchange, 0x80, ins::COMPUTE_SIGNATURE_INIT, [0x00, 0x00], &init, name)?;
    if sw == StatusWord::SECURITY_STATUS {
        // A locked PIN returns this too; VERIFY without data distinguishes them and uses no try.
        ask(exchange, 0x80, ins::VERIFY, [0x00, 0x01], &[], name)?;
    }
    if sw.is_error() {
        return Err(refused(name, sw));
    }
    let data = tlv::field(tag::FINAL_HASH, digest);
    let answer = ask(exchange, 0x80, ins::COMPUTE_SIGNATURE_UPDATE, [0x80, 0x00], &data, name)?;
    ask(exchange, 0x80, ins::COMPUTE_SIGNATURE_INIT, [0x01, 0x00], &[], name)?;
    // 33 40 r s, or 33 00 40 r s: the signature is at the end.
    answer.last_chunk().copied().ok_or_else(|| {
        ServerError::Request(format!("the card's signature has {} B, expected 64", answer.len()))
    })
}

/// Sends a command and fetches the whole answer, which must be a success.
fn ask(
    exchange: Exchange<'_>,
    cla: u8,
    ins: u8,
    parameters: [u8; 2],
    data: &[u8],
    name: &str,
) -> Result<Vec<u8>, ServerError> {
    match send(exchange, cla, ins, parameters, data, name)? {
        (_, sw) if sw.is_error() => Err(refused(name, sw)),
        (answer, _) => Ok(answer),
    }
}

/// Sends a command and fetches the whole answer, whatever its status word.
fn send(
    exchange: Exchange<'_>,
    cla: u8,
    ins: u8,
    [p1, p2]: [u8; 2],
    data: &[u8],
    name: &str,
) -> Result<(Vec<u8>, StatusWord), ServerError> {
    let mut apdu = Zeroizing::new(Command { cla, ins, p1, p2, data, le: None }.to_bytes());
    let mut whole = Vec::new();
    loop {
        let mut answer = exchange(&apdu)?;
        let sw = answer
            .split_off(answer.len().saturating_sub(2))
            .first_chunk()
            .map(|sw| StatusWord(u16::from_be_bytes(*sw)))
            .ok_or_else(|| ServerError::Missing(format!("no answer from the card to {name}")))?;
        whole.append(&mut answer);
        match sw.waiting() {
            Some(_) => apdu = Zeroizing::new(vec![0x00, ins::GET_RESPONSE, 0x00, 0x00, 0x00]),
            None => return Ok((whole, sw)),
        }
    }
}

fn refused(name: &str, sw: StatusWord) -> ServerError {
    let hint = match sw {
        StatusWord::PIN_LOCKED | StatusWord(0x63c0) => {
            "the PIN is locked: unlock it with `warifu card reset --unblock-pin`"
        }
        StatusWord::DATA_INVALIDATED => "the card has no PIN: omit it",
        StatusWord(sw) if sw & 0xfff0 == 0x63c0 => match name {
            "VERIFY" => "the PIN is wrong; the last digit is the number of tries left",
            _ => "the card needs its PIN: enter it, or use --pin-file",
        },
        _ => "see GSMA IoT.05",
    };
    ServerError::Request(format!("the card refused {name} with {sw}: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personalise::{self, Create, List};
    use warifu_card::Quirks;

    #[test]
    fn request_from_every_card_profile() {
        for (quirks, _) in Quirks::PROFILES {
            for curve in ["secp256r1", "brainpoolP256r1"] {
                let folder = tempfile::tempdir().unwrap();
                let state = folder.path().join("card.state");
                let wanted = serde_json::json!({
                    "state": state, "quirks": quirks, "curve": curve, "pin": {"digits": "1234"},
                });
                personalise::create(&serde_json::from_value::<Create>(wanted).unwrap()).unwrap();
                let asked = |pin: Option<&str>| {
                    csr(&Csr {
                        state: Some(state.clone()),
                        socket: None,
                        subject: "CN=device-1".to_owned(),
                        pin: pin.map(|pin| Zeroizing::new(pin.to_owned())),
                    })
                };
                let made = asked(Some("1234")).unwrap().csr;
                assert!(
                    made.starts_with("-----BEGIN CERTIFICATE REQUEST-----"),
                    "{quirks} {curve}"
                );
                let error = asked(None).unwrap_err().to_string();
                assert!(error.contains("needs its PIN"), "{error}");
                assert!(asked(Some("4321")).unwrap_err().to_string().contains("63C2"));
                let listed = personalise::list(&List { state: state.clone() }).unwrap();
                assert_eq!(listed.pin.unwrap().tries_left, 2, "the wrong PIN was counted");
            }
        }
    }

    #[test]
    fn request_with_locked_pin() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("card.state");
        let wanted = serde_json::json!({"state": state, "pin": {"digits": "1234", "tries": 1}});
        personalise::create(&serde_json::from_value::<Create>(wanted).unwrap()).unwrap();
        for pin in [Some("4321"), Some("1234"), None] {
            let subject = "CN=device-1".to_owned();
            let pin = pin.map(|pin| Zeroizing::new(pin.to_owned()));
            let state = Some(state.clone());
            let error = csr(&Csr { state, socket: None, subject, pin }).unwrap_err().to_string();
            let hint = "the PIN is locked: unlock it with `warifu card reset --unblock-pin`";
            assert!(error.ends_with(hint), "{error}");
        }
    }
}
