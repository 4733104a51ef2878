// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card of this process as a token.

use std::time::{Duration, Instant};

use warifu_card::apdu::StatusWord;
use warifu_card::crypto::SecretBytes;
use warifu_card::tlv::{self, tag};
use warifu_card::{PIN_MAX_BYTES, PIN_MIN_BYTES, ins};
use zeroize::Zeroizing;

use crate::applet::{Applet, Call, Options};
use crate::error::TokenError;
use crate::object::{File, Inventory, TokenInfo, fields, value};
use crate::signing::{self, Signing};
use crate::token::{GeneratedPair, PinState, SignInput, Token};
use crate::transport::{Transport, TransportError};

/// A READ FILE that gives less than this ends the file: most cards give 256 bytes, some 255.
const READ_FULL_BYTES: usize = 255;
/// The most bytes of a file: READ FILE's offset has 15 bits.
const FILE_MAX_BYTES: usize = 0x7fff;
/// The most bytes of one GET RANDOM.
const RANDOM_MAX_BYTES: usize = 256;
/// The reference of the PIN in VERIFY: PIN 1.
const PIN_REFERENCE: u8 = 0x01;
/// How long the tries that the card has reported are taken as current.
const TRIES_AGE_MAX: Duration = Duration::from_secs(1);

/// A card that this process owns.
pub struct CardToken {
    applet: Applet,
    signing: Signing,
    inventory: Option<Inventory>,
    /// How often the channel was lost, perhaps with the login and volatile keys.
    losses: u64,
    /// The tries left that the card last reported, and when.
    tries: Option<(u8, Instant)>,
}

impl CardToken {
    /// A token at the end of a transport; nothing is sent before the first operation.
    #[must_use]
    pub fn new(transport: Box<dyn Transport>, options: Options) -> CardToken {
        let applet = Applet::new(transport, options);
        CardToken { applet, signing: Signing::default(), inventory: None, losses: 0, tries: None }
    }

    /// Incremented with every loss of the card's session: the login and volatile keys may be lost.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Runs commands, and once more if the card has lost the channel, in which case it has done
    /// nothing.
    fn run<T>(
        &mut self,
        deadline: Instant,
        work: impl Fn(&mut Applet, &mut Signing, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        self.run_if(deadline, TokenError::channel_lost, work)
    }

    /// Reads the part of a file that follows `content`, one READ FILE, and adds it; returns whether
    /// it was the last.
    ///
    /// # Errors
    /// As [`Token::read_file`].
    pub fn read_file_part(
        &mut self,
        file: &File,
        content: &mut Vec<u8>,
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        let id = tlv::field(tag::FILE_ID, &file.id);
        let [p1, p2] = (content.len() as u16).to_be_bytes();
        let (name, ins) = ("READ FILE", ins::READ_FILE);
        let call = Call { name, ins, p1, p2, data: &id, answers: true };
        let part = self.run(deadline, |applet, _, deadline| applet.call(&call, deadline));
        let mut part = match part {
            // The end of a file whose length is a multiple of what one answer holds.
            Err(TokenError::Status { .. }) if !content.is_empty() => return Ok(true),
            answer => answer?,
        };
        let ends = part.len() < READ_FULL_BYTES;
        content.append(&mut part);
        let whole = file.size_bytes.is_some_and(|size| content.len() == usize::from(size));
        Ok(ends || whole || content.len() > FILE_MAX_BYTES)
    }

    /// As [`CardToken::run`], but repeats only after errors that `repeat` accepts.
    fn run_if<T>(
        &mut self,
        deadline: Instant,
        repeat: impl Fn(&TokenError) -> bool,
        work: impl Fn(&mut Applet, &mut Signing, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let result = self.exclusively(deadline, &work);
        match result {
            Err(error) if repeat(&error) => {
                self.lose_channel();
                self.losses += 1;
                self.exclusively(deadline, &work)
            }
            other => other,
        }
        .inspect_err(|error| {
            if matches!(error, TokenError::Transport(_)) {
                self.lose_channel();
                self.losses += 1;
            }
        })
    }

    /// On a channel that is shared with other programs: excludes them, and selects the applet
    /// again, since they may have selected another one.
    fn exclusively<T>(
        &mut self,
        deadline: Instant,
        work: &impl Fn(&mut Applet, &mut Signing, Instant) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        self.applet.select(deadline)?;
        if !self.applet.shared_channel() {
            return work(&mut self.applet, &mut self.signing, deadline);
        }
        self.applet.begin(deadline)?;
        self.lose_channel();
        let result = work(&mut self.applet, &mut self.signing, deadline);
        self.applet.end();
        result
    }

    fn lose_channel(&mut self) {
        self.applet.forget();
        self.signing.forget();
    }

    /// VERIFY; returns the status word, 6984 for a card without the command.
    fn verify_command(
        &mut self,
        call: &Call<'_>,
        deadline: Instant,
    ) -> Result<StatusWord, TokenError> {
        // A card that was reset after counting a wrong PIN would count it twice.
        let repeat = |error: &TokenError| {
            error.channel_lost() && (call.data.is_empty() || error.sw().is_some())
        };
        let sw = self.run_if(deadline, repeat, |applet, _, deadline| {
            match applet.call_any(call, deadline)?.sw {
                // A lost channel must not be taken for a card without a PIN.
                sw @ (StatusWord::CHANNEL_NOT_SUPPORTED | StatusWord::CLASS) => {
                    Err(TokenError::status(call.name, sw))
                }
                sw => Ok(sw),
            }
        });
        if let Ok(sw) = &sw {
            self.tries = tries_left(*sw).map(|tries| (tries, Instant::now()));
        }
        match sw {
            Err(error) if error.sw() == Some(StatusWord::CLASS) => Ok(StatusWord::DATA_INVALIDATED),
            other => other,
        }
    }

    /// VERIFY with a PIN. After a reset of the card it is sent again only if the card has not
    /// counted it, that is if as many tries are left as just before.
    fn send_pin(&mut self, pin: &[u8], deadline: Instant) -> Result<StatusWord, TokenError> {
        let call = verify_call(pin);
        let before = self.recent_tries();
        let error = match self.verify_command(&call, deadline) {
            Err(error @ TokenError::Transport(TransportError::CardReset)) => error,
            result => return result,
        };
        match (before, self.pin_state(deadline)?) {
            (Some(before), PinState::Wanted(Some(now))) if now >= before => {
                self.verify_command(&call, deadline)
            }
            _ => Err(error),
        }
    }

    /// The tries left, if the card has reported them recently: another program may have restored
    /// them since. The card is not asked, which would cost an exchange at every login.
    fn recent_tries(&self) -> Option<u8> {
        let recent = self.tries.filter(|(_, named)| named.elapsed() < TRIES_AGE_MAX);
        recent.map(|(tries, _)| tries)
    }

    /// A public key container for a peer's key: one that may be updated and is part of no pair.
    fn peer_container(&mut self, key: &[u8], deadline: Instant) -> Result<Vec<u8>, TokenError> {
        let inventory = self.inventory(deadline)?;
        let own = inventory.private_keys.iter().find(|private| private.id == key);
        let curve = own.map(|own| own.attributes.curve());
        let is_paired = |id: &[u8]| {
            inventory.private_keys.iter().any(|private| private.public_id.as_deref() == Some(id))
        };
        let container = inventory.public_keys.iter().find(|public| {
            let attributes = public.attributes;
            let fits = attributes.may_update() && attributes.may_derive() && !is_paired(&public.id);
            fits && Some(attributes.curve()) == curve
        });
        container.map(|public| public.id.clone()).ok_or(TokenError::NoPeerContainer)
    }

    fn inventory(&mut self, deadline: Instant) -> Result<&Inventory, TokenError> {
        if self.inventory.is_none() {
            self.objects(deadline)?;
        }
        self.inventory.as_ref().ok_or(TokenError::answer("GET DATA", "was lost"))
    }
}

impl Token for CardToken {
    fn info(&mut self, deadline: Instant) -> Result<TokenInfo, TokenError> {
        let location = self.applet.location();
        self.run(deadline, |applet, _, deadline| {
            let aid = applet.select(deadline)?.aid;
            // Not every applet has an application template; it is enough that it was selected.
            let response = applet.call_any(&get_data(0), deadline)?;
            Ok(TokenInfo::parse(&response.data, &aid, location.clone()))
        })
    }

    fn pin_state(&mut self, deadline: Instant) -> Result<PinState, TokenError> {
        let sw = self.verify_command(&verify_call(&[]), deadline)?;
        Ok(match sw {
            StatusWord::OK => PinState::Verified,
            StatusWord::PIN_LOCKED => PinState::Locked,
            sw => match tries_left(sw) {
                Some(0) => PinState::Locked,
                Some(tries) => PinState::Wanted(Some(tries)),
                None if sw == StatusWord::SECURITY_STATUS => PinState::Wanted(None),
                None if sw == StatusWord::UNKNOWN => return Err(TokenError::status("VERIFY", sw)),
                // 6984, or an applet without VERIFY.
                None => PinState::Absent,
            },
        })
    }

    fn verify_pin(&mut self, pin: &[u8], deadline: Instant) -> Result<(), TokenError> {
        if !is_pin(pin) {
            return match self.pin_state(deadline)? {
                PinState::Absent => Err(TokenError::NoPin),
                PinState::Locked => Err(TokenError::PinLocked),
                PinState::Wanted(tries_left) => Err(TokenError::PinWrong { tries_left }),
                PinState::Verified => Err(TokenError::PinWrong { tries_left: None }),
            };
        }
        let mut padded = Box::new(Zeroizing::new([0xff; PIN_MAX_BYTES]));
        padded[..pin.len()].copy_from_slice(pin);
        match self.send_pin(&**padded, deadline)? {
            StatusWord::OK => Ok(()),
            StatusWord::PIN_LOCKED => Err(TokenError::PinLocked),
            StatusWord::DATA_INVALIDATED | StatusWord::INSTRUCTION => Err(TokenError::NoPin),
            sw => match tries_left(sw) {
                Some(0) => Err(TokenError::PinLocked),
                Some(tries) => Err(TokenError::PinWrong { tries_left: Some(tries) }),
                None => Err(TokenError::status("VERIFY", sw)),
            },
        }
    }

    fn objects(&mut self, deadline: Instant) -> Result<Inventory, TokenError> {
        let data = self.run(deadline, |applet, _, deadline| applet.call(&get_data(1), deadline))?;
        let inventory = Inventory::parse(&data)
            .ok_or(TokenError::answer("GET DATA (object list)", "is not a list of templates"))?;
        self.inventory = Some(inventory.clone());
        Ok(inventory)
    }

    fn read_file(&mut self, file: &File, deadline: Instant) -> Result<Vec<u8>, TokenError> {
        let mut content = Vec::new();
        while !self.read_file_part(file, &mut content, deadline)? {}
        Ok(content)
    }

    fn read_public_key(&mut self, id: &[u8], deadline: Instant) -> Result<[u8; 65], TokenError> {
        let data = tlv::field(tag::PUBLIC_KEY_ID, id);
        let (name, ins) = ("READ PUBLIC KEY", ins::READ_PUBLIC_KEY);
        let call = Call { name, ins, p1: 0, p2: 0, data: &data, answers: true };
        let answer = self.run(deadline, |applet, _, deadline| applet.call(&call, deadline))?;
        point_of(&answer).ok_or(TokenError::answer(name, "contains no point"))
    }

    fn sign(
        &mut self,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError> {
        self.run(deadline, |applet, signing, deadline| signing.sign(applet, key, input, deadline))
            .map_err(pin_needed)
    }

    fn verify(
        &mut self,
        public_key: &[u8],
        input: SignInput<'_>,
        signature: &[u8; 64],
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        self.run(deadline, |applet, _, deadline| {
            signing::verify(applet, public_key, input, signature, deadline)
        })
    }

    fn derive(
        &mut self,
        key: &[u8],
        peer: &[u8; 65],
        deadline: Instant,
    ) -> Result<SecretBytes, TokenError> {
        let keys = &self.inventory(deadline)?.private_keys;
        let own = keys.iter().find(|private| private.id == key);
        let curve = own.and_then(|own| own.attributes.curve());
        if curve.is_some_and(|curve| curve.point(peer).is_none()) {
            return Err(TokenError::PeerNotOnCurve);
        }
        let container = self.peer_container(key, deadline)?;
        let mut data = tlv::field(tag::PRIVATE_KEY_ID, key);
        tlv::push(&mut data, tag::PUBLIC_KEY_ID, &container);
        let (name, ins) = ("COMPUTE DH", ins::COMPUTE_DH);
        let call = Call { name, ins, p1: 0, p2: 0, data: &data, answers: true };
        let secret = self.run(deadline, |applet, _, deadline| {
            signing::put_public_key(applet, &container, peer, deadline)?;
            applet.call(&call, deadline)
        });
        secret.map(SecretBytes::new).map_err(pin_needed)
    }

    fn generate(&mut self, key: &[u8], deadline: Instant) -> Result<GeneratedPair, TokenError> {
        let data = tlv::field(tag::PRIVATE_KEY_ID, key);
        let (name, ins) = ("GENERATE KEY PAIR", ins::GENERATE_KEY_PAIR);
        let call = Call { name, ins, p1: 0, p2: 0, data: &data, answers: true };
        self.inventory = None;
        self.signing.forget();
        let answer = self.run(deadline, |applet, _, deadline| applet.call(&call, deadline));
        let answer = answer.map_err(pin_needed)?;
        let found = fields(&answer);
        let public_id = found.as_ref().and_then(|fields| value(fields, tag::PUBLIC_KEY_ID));
        let point = point_of(&answer).ok_or(TokenError::answer(name, "contains no point"))?;
        Ok(GeneratedPair { public_id: public_id.map(<[u8]>::to_vec), point })
    }

    fn random(&mut self, room: &mut [u8], deadline: Instant) -> Result<(), TokenError> {
        let (name, ins) = ("GET RANDOM", ins::GET_RANDOM);
        for part in room.chunks_mut(RANDOM_MAX_BYTES) {
            let call = Call { name, ins, p1: 0, p2: 0, data: &[], answers: true };
            let le = Some(part.len());
            let answer = self.run(deadline, |applet, _, deadline| {
                let response = applet.call_with_le(&call, le, deadline)?;
                match response.sw {
                    StatusWord::OK => Ok(Zeroizing::new(response.data)),
                    sw => Err(TokenError::status(name, sw)),
                }
            })?;
            if answer.len() != part.len() {
                let what = "has the wrong length";
                return Err(TokenError::answer(name, what));
            }
            part.copy_from_slice(&answer);
        }
        Ok(())
    }

    fn reset(&mut self, deadline: Instant) -> Result<(), TokenError> {
        self.signing.forget();
        self.inventory = None;
        self.losses += 1;
        self.applet.reset(deadline).map(drop)
    }

    fn release(&mut self, deadline: Instant) {
        self.signing.forget();
        self.losses += 1;
        self.applet.close(deadline);
    }
}

/// GET DATA: 00 the application's template, 01 the object list.
fn get_data(p1: u8) -> Call<'static> {
    Call { name: "GET DATA", ins: ins::GET_DATA, p1, p2: 0, data: &[], answers: true }
}

/// VERIFY: with a PIN, or without data to ask how many tries are left.
fn verify_call(data: &[u8]) -> Call<'_> {
    Call { name: "VERIFY", ins: ins::VERIFY, p1: 0, p2: PIN_REFERENCE, data, answers: false }
}

/// Whether a PIN is valid (ETSI TS 102 221 section 9.5.1).
fn is_pin(pin: &[u8]) -> bool {
    (PIN_MIN_BYTES..=PIN_MAX_BYTES).contains(&pin.len()) && pin.iter().all(u8::is_ascii_digit)
}

/// The tries left in the status word 63Cx.
fn tries_left(sw: StatusWord) -> Option<u8> {
    (sw.0 & 0xfff0 == 0x63c0).then_some((sw.0 & 0xf) as u8)
}

fn pin_needed(error: TokenError) -> TokenError {
    match error.sw() {
        Some(StatusWord::SECURITY_STATUS) => TokenError::PinNeeded,
        Some(StatusWord::PIN_LOCKED) => TokenError::PinLocked,
        _ => error,
    }
}

/// The point of `34 { 49 { 86 { 04 X Y } } }`, possibly among other fields.
fn point_of(answer: &[u8]) -> Option<[u8; 65]> {
    let outer = fields(answer)?;
    let data = fields(value(&outer, tag::PUBLIC_KEY_DATA)?)?;
    let key = fields(value(&data, tag::EC_KEY)?)?;
    value(&key, tag::EC_POINT)?.try_into().ok().filter(|point: &[u8; 65]| point[0] == 4)
}
