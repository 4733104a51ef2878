// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The card as a state machine: a command in, an answer out.

mod channel;
mod data;
mod derive;
mod keys;
mod personalise;
mod signature;
mod verify;

pub use personalise::{KeySource, ObjectInfo, PersonaliseError};

use std::fmt;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use self::channel::{CHANNELS, Chain, Channel, Class};
use crate::apdu::{Command, Response, SHORT_ANSWER_MAX_BYTES, StatusWord};
use crate::identity::{APPLET_ID_MAX_BYTES, CARD_LABEL};
use crate::object::{Object, Selector, Store, find};
use crate::pin::Pin;
use crate::quirks::{ClosedChannel, IdOrder, NoLe, OtherLe, Quirks, SignatureHeader, SurplusByte};
use crate::tlv::{Fields, SignatureLength, tag};

/// The application identifiers that select the applet: wolfSSL's and Orange's clients use the
/// first, Thales' the second, NTT's card the third.
pub const AIDS: [&[u8]; 3] = [
    &[0xa0, 0x00, 0x00, 0x05, 0x59, 0x00, 0x10],
    &[0xa0, 0x00, 0x00, 0x00, 0x30, 0x53, 0xf1, 0x24, 0x01, 0x77, 0x01, 0x01, 0x49, 0x53, 0x41],
    &[
        0xa0, 0x00, 0x00, 0x01, 0x15, 0x70, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x49, 0x53, 0x41,
        0x02,
    ],
];

/// The answer to reset: direct convention, no interface bytes (so T=0 at the default speed), and
/// "WARIFU" as historical bytes of a format of its own (ISO 7816-4 section 12.1.1).
pub const ATR: [u8; 8] = [0x3b, 0x06, b'W', b'A', b'R', b'I', b'F', b'U'];

/// The instructions of the card (GSMA IoT.05; the last five are ISO 7816-4's).
pub mod ins {
    #![allow(missing_docs, reason = "the names say what the values are")]
    pub const PUT_PUBLIC_KEY_INIT: u8 = 0x24;
    pub const PUT_PUBLIC_KEY_UPDATE: u8 = 0xd8;
    pub const COMPUTE_SIGNATURE_INIT: u8 = 0x2a;
    pub const COMPUTE_SIGNATURE_UPDATE: u8 = 0x2b;
    pub const VERIFY_SIGNATURE_INIT: u8 = 0x2c;
    pub const VERIFY_SIGNATURE_UPDATE: u8 = 0x2d;
    pub const COMPUTE_DH: u8 = 0x46;
    pub const COMPUTE_PRF: u8 = 0x48;
    pub const HKDF_EXTRACT: u8 = 0x4a;
    pub const GENERATE_KEY_PAIR: u8 = 0xb9;
    pub const GET_DATA: u8 = 0xcb;
    pub const READ_PUBLIC_KEY: u8 = 0xcd;
    pub const GET_RANDOM: u8 = 0x84;
    pub const READ_FILE: u8 = 0xb0;
    pub const VERIFY: u8 = 0x20;
    pub const MANAGE_CHANNEL: u8 = 0x70;
    pub const SELECT: u8 = 0xa4;
    pub const GET_RESPONSE: u8 = 0xc0;

    /// Those that need the applet selected.
    pub(super) const OF_THE_APPLET: [u8; 15] = [
        PUT_PUBLIC_KEY_INIT,
        PUT_PUBLIC_KEY_UPDATE,
        COMPUTE_SIGNATURE_INIT,
        COMPUTE_SIGNATURE_UPDATE,
        VERIFY_SIGNATURE_INIT,
        VERIFY_SIGNATURE_UPDATE,
        COMPUTE_DH,
        COMPUTE_PRF,
        HKDF_EXTRACT,
        GENERATE_KEY_PAIR,
        GET_DATA,
        READ_PUBLIC_KEY,
        GET_RANDOM,
        READ_FILE,
        VERIFY,
    ];
}

/// How the card chooses the nonce of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonce {
    /// By RFC 6979 alone: the same signature for the same text.
    Deterministic,
    /// By RFC 6979 with 32 random bytes beside (section 3.6).
    Hedged,
}

/// What a card is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How it deviates.
    pub quirks: Quirks,
    /// How it chooses nonces.
    pub nonce: Nonce,
    /// Its PIN, if it has one.
    pub pin: Option<Pin>,
    /// The applet's proprietary identifier; what is behind [`APPLET_ID_MAX_BYTES`] is cut.
    pub applet_id: Vec<u8>,
}

impl Default for Settings {
    fn default() -> Settings {
        let applet_id = CARD_LABEL.as_bytes().to_vec();
        Settings { quirks: Quirks::STRICT, nonce: Nonce::Hedged, pin: None, applet_id }
    }
}

/// How a card loses power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Power off and on.
    Cold,
    /// By the reset line.
    Warm,
}

/// A virtual IoT SAFE card.
///
/// It does nothing by itself: [`Card::transmit`] takes a command and the random generator that
/// the command may draw from. What survives a loss of power is in [`Card::to_bytes`]; the caller
/// stores it, in one atomic write, whenever [`Card::take_dirty`] says so and before it hands out
/// the answer.
pub struct Card {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    channels: [Channel; CHANNELS],
    pin_verified: bool,
    dirty: bool,
}

/// Shows no key, no PIN, no text that waits to be signed.
impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Card")
            .field("settings", &self.settings)
            .field("objects", &self.list().len())
            .finish_non_exhaustive()
    }
}

/// A command of the applet, its chain put together.
struct Request<'a> {
    channel: usize,
    ins: u8,
    p1: u8,
    p2: u8,
    data: &'a [u8],
    le: Option<usize>,
}

/// What a command gives, before Le cuts it.
struct Answer {
    data: Zeroizing<Vec<u8>>,
    /// Whether sending the command again gives the same: then 6Cxx costs nothing.
    repeatable: bool,
}

impl Answer {
    fn none() -> Answer {
        Answer::of(Vec::new())
    }

    fn of(data: Vec<u8>) -> Answer {
        Answer { data: Zeroizing::new(data), repeatable: false }
    }

    fn read(data: Vec<u8>) -> Answer {
        Answer { repeatable: true, ..Answer::of(data) }
    }
}

type Handled = Result<Answer, StatusWord>;

impl Card {
    /// An empty card.
    #[must_use]
    pub fn new(settings: Settings) -> Card {
        Card::with_store(settings, Store::default())
    }

    pub(crate) fn with_store(mut settings: Settings, store: Store) -> Card {
        settings.applet_id.truncate(APPLET_ID_MAX_BYTES);
        Card {
            settings,
            store,
            channels: Channel::after_reset(),
            pin_verified: false,
            dirty: false,
        }
    }

    /// Answers a command. Never panics, whatever the bytes; an answer that is an error has
    /// changed nothing that survives a reset, but for the PIN's counter.
    pub fn transmit(&mut self, command: &[u8], rng: &mut dyn CryptoRng) -> Response {
        let parsed = match self.settings.quirks.surplus_byte {
            SurplusByte::Refuse => Command::parse(command),
            SurplusByte::Ignore => Command::parse_with_surplus(command),
        };
        let answer = parsed.and_then(|command| self.accept(command, rng));
        answer.unwrap_or_else(Response::status)
    }

    /// Loses all that does not survive a loss of power: channels, sessions, the verified PIN,
    /// volatile keys. A warm reset loses the same as a cold one.
    pub fn reset(&mut self, _: Reset) {
        self.channels = Channel::after_reset();
        self.pin_verified = false;
        self.store.forget_volatile();
    }

    /// Whether [`Card::to_bytes`] changed since this was last asked.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// What the card is set to.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn accept(
        &mut self,
        command: Command<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Response, StatusWord> {
        let class = Class::parse(command.cla)?;
        let channel = class.channel;
        if !self.channels[channel].open {
            return self.select_on_closed_channel(class, &command);
        }
        if command.ins == ins::GET_RESPONSE && class.interindustry && !class.chained {
            return self.get_response(channel, &command);
        }
        // ISO 7816-4 section 5.3.4: the rest of an answer waits for GET RESPONSE alone.
        self.channels[channel].pending = Zeroizing::default();
        let chain = self.channels[channel].chain.take();
        let goes_on = chain.as_ref().is_none_or(|chain| chain.continues_with(&command));
        if !goes_on {
            return Err(StatusWord::LAST_OF_CHAIN_EXPECTED);
        }
        if class.chained {
            self.channels[channel].chain = Some(Chain::joined(chain, &command)?);
            return Ok(Response::status(StatusWord::OK));
        }
        let joined = chain.map(|chain| Chain::joined(Some(chain), &command)).transpose()?;
        let data = joined.as_ref().map_or(command.data, |chain| &chain.data);
        let Command { ins, p1, p2, le, .. } = command;
        let request = Request { channel, ins, p1, p2, data, le };
        let answer = match ins {
            ins::MANAGE_CHANNEL if class.interindustry => self.manage_channel(&request)?,
            ins::SELECT if class.interindustry => self.select(&request)?,
            _ => self.applet(&request, rng)?,
        };
        self.deliver(channel, answer, le)
    }

    fn applet(&mut self, request: &Request<'_>, rng: &mut dyn CryptoRng) -> Handled {
        if !ins::OF_THE_APPLET.contains(&request.ins) {
            return Err(StatusWord::INSTRUCTION);
        }
        if self.channels[request.channel].selected.is_none() {
            return Err(StatusWord::CONDITIONS);
        }
        match request.ins {
            ins::GET_DATA => self.get_data(request),
            ins::READ_FILE => self.read_file(request),
            ins::GET_RANDOM => get_random(request, rng),
            ins::GENERATE_KEY_PAIR => self.generate_key_pair(request, rng),
            ins::READ_PUBLIC_KEY => self.read_public_key(request),
            ins::PUT_PUBLIC_KEY_INIT => self.put_public_key_init(request),
            ins::PUT_PUBLIC_KEY_UPDATE => self.put_public_key_update(request),
            ins::COMPUTE_SIGNATURE_INIT => self.compute_signature_init(request),
            ins::COMPUTE_SIGNATURE_UPDATE => self.compute_signature_update(request, rng),
            ins::VERIFY_SIGNATURE_INIT => self.verify_signature_init(request),
            ins::VERIFY_SIGNATURE_UPDATE => self.verify_signature_update(request),
            ins::COMPUTE_DH => self.compute_dh(request),
            ins::COMPUTE_PRF => self.compute_prf(request),
            ins::HKDF_EXTRACT => self.hkdf_extract(request),
            _ => self.verify(request),
        }
    }

    /// The object that a selector names.
    fn find<T: Object>(&self, objects: &[T], selector: Selector<'_>) -> Result<usize, StatusWord> {
        let either_order = self.settings.quirks.id_order == IdOrder::Either;
        find(objects, selector, either_order).ok_or(StatusWord::NOT_FOUND)
    }

    /// The fields of a command.
    fn fields<'a>(&self, data: &'a [u8], allowed: &[u8]) -> Result<Fields<'a>, StatusWord> {
        let signature = match self.settings.quirks.signature_header {
            SignatureHeader::Ber => SignatureLength::Ber,
            SignatureHeader::Length16 => SignatureLength::BerOr16Bit,
        };
        Fields::parse(data, allowed, signature)
    }

    /// Cuts an answer to what Le asks for; the rest waits for GET RESPONSE.
    fn deliver(
        &mut self,
        channel: usize,
        answer: Answer,
        le: Option<usize>,
    ) -> Result<Response, StatusWord> {
        let quirks = self.settings.quirks;
        let length = answer.data.len();
        let room = match le {
            Some(le) => le,
            None if quirks.no_le == NoLe::Deliver => SHORT_ANSWER_MAX_BYTES,
            None => 0,
        };
        let exact = le.is_some_and(|le| le < SHORT_ANSWER_MAX_BYTES && le != length);
        let sendable = length <= SHORT_ANSWER_MAX_BYTES && answer.repeatable;
        if quirks.other_le == OtherLe::Wrong6C && exact && sendable {
            return Err(StatusWord::wrong_le(length));
        }
        self.channels[channel].pending = answer.data;
        Ok(self.next_part(channel, room))
    }

    /// The next `room` bytes of what waits.
    fn next_part(&mut self, channel: usize, room: usize) -> Response {
        let pending = &mut self.channels[channel].pending;
        let short = room <= SHORT_ANSWER_MAX_BYTES;
        let most = if short { self.settings.quirks.answer_max.bytes() } else { room };
        let cut = room.min(pending.len()).min(most);
        let rest = Zeroizing::new(pending.split_off(cut));
        let mut data = std::mem::replace(pending, rest);
        let waiting = pending.len();
        let sw = if waiting == 0 { StatusWord::OK } else { StatusWord::more(waiting) };
        Response { data: std::mem::take(&mut *data), sw }
    }

    fn get_response(
        &mut self,
        channel: usize,
        command: &Command<'_>,
    ) -> Result<Response, StatusWord> {
        if (command.p1, command.p2) != (0, 0) {
            return Err(StatusWord::INCORRECT_P1_P2);
        }
        if !command.data.is_empty() {
            return Err(StatusWord::WRONG_LENGTH);
        }
        let waiting = self.channels[channel].pending.len();
        if waiting == 0 {
            return Err(StatusWord::CONDITIONS);
        }
        let room = command.le.unwrap_or(SHORT_ANSWER_MAX_BYTES);
        let too_much = room < SHORT_ANSWER_MAX_BYTES && room > waiting;
        if self.settings.quirks.other_le == OtherLe::Wrong6C && too_much {
            return Err(StatusWord::wrong_le(waiting));
        }
        Ok(self.next_part(channel, room))
    }

    /// On a channel that is not open there is nothing but SELECT, and that only by quirk.
    fn select_on_closed_channel(
        &mut self,
        class: Class,
        command: &Command<'_>,
    ) -> Result<Response, StatusWord> {
        let selects = command.ins == ins::SELECT && class.interindustry && !class.chained;
        if !selects || self.settings.quirks.closed_channel == ClosedChannel::Refuse {
            return Err(StatusWord::CHANNEL_NOT_SUPPORTED);
        }
        let Command { ins, p1, p2, data, le, .. } = *command;
        let request = Request { channel: class.channel, ins, p1, p2, data, le };
        let answer = self.select(&request)?;
        self.channels[class.channel].open = true;
        self.deliver(class.channel, answer, le)
    }
}

/// GET RANDOM: as many bytes as Le says, 256 at most.
fn get_random(request: &Request<'_>, rng: &mut dyn CryptoRng) -> Handled {
    request.no_parameters()?;
    let length = request.le.filter(|&le| le <= SHORT_ANSWER_MAX_BYTES && request.data.is_empty());
    let mut random = vec![0; length.ok_or(StatusWord::WRONG_LENGTH)?];
    rng.fill_bytes(&mut random);
    Ok(Answer::of(random))
}

impl Request<'_> {
    /// Refuses parameters other than 00 00.
    fn no_parameters(&self) -> Result<(), StatusWord> {
        if (self.p1, self.p2) == (0, 0) { Ok(()) } else { Err(StatusWord::INCORRECT_P1_P2) }
    }
}

/// What a command selects by id or by label: exactly one of the two.
fn selector<'a>(fields: &Fields<'a>, id: u8, label: u8) -> Result<Selector<'a>, StatusWord> {
    optional_selector(fields, id, label)?.ok_or(StatusWord::INCORRECT_DATA)
}

fn optional_selector<'a>(
    fields: &Fields<'a>,
    id: u8,
    label: u8,
) -> Result<Option<Selector<'a>>, StatusWord> {
    match (fields.get(id)?, fields.get(label)?) {
        (Some(id), None) => Ok(Some(Selector::Id(id))),
        (None, Some(label)) => Ok(Some(Selector::Label(label))),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(StatusWord::INCORRECT_DATA),
    }
}

/// The selector of a private key.
fn private_key<'a>(fields: &Fields<'a>) -> Result<Selector<'a>, StatusWord> {
    selector(fields, tag::PRIVATE_KEY_ID, tag::PRIVATE_KEY_LABEL)
}

/// The selector of a public key.
fn public_key<'a>(fields: &Fields<'a>) -> Result<Selector<'a>, StatusWord> {
    selector(fields, tag::PUBLIC_KEY_ID, tag::PUBLIC_KEY_LABEL)
}
