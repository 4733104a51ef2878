// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent on its socket: who calls, what they may, and what they get.

mod places;
mod rest;
mod socket;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use warifu_agent_protocol::message::{
    Answer, Call, FRAME_MAX_BYTES, RANDOM_MAX_BYTES, Reply, Request, decode, encode,
};
use warifu_iotsafe_client::{TokenError, TransportError};
use warifu_os::Clock;
use zeroize::Zeroizing;

use crate::LOG;
use crate::card::{Caller, CallerId, Holder, PinStanding};
use crate::jwt::Jwts;
use crate::metrics::Metrics;
use crate::rights::{Right, Rights};
use places::{Kind, Places};
use rest::Rest;
pub use socket::{Socket, SocketError};

/// How long someone without rights may take to ask for what it does not get.
const STRANGERS_PATIENCE: Duration = Duration::from_secs(5);
/// How much room a frame is given before more of it has come than this.
const ROOM_BYTES: usize = 16 * 1024;
/// The longest that a caller waits, whatever it says: no turn is waited for longer.
const WITHIN_MAX: Duration = Duration::from_secs(600);

/// One card with its tokens.
pub struct Card {
    /// The card.
    pub holder: Holder,
    /// Its tokens.
    pub jwts: Jwts,
    /// What wakes the thread that works ahead.
    rest: Rest,
}

/// What callers come to.
pub struct Agent {
    cards: Vec<Card>,
    rights: Vec<Rights>,
    own_uid: u32,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    callers: AtomicU64,
    places: Places,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl Agent {
    /// An agent with these cards. `rights` without entries are the own user's alone; `stop` is
    /// called when a caller asks for the end.
    #[must_use]
    pub fn new(
        holders: Vec<Holder>,
        rights: Vec<Rights>,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        stop: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Agent> {
        let own_uid = rustix::process::getuid().as_raw();
        let rights = if rights.is_empty() { vec![Rights::all(own_uid)] } else { rights };
        let cards = holders.into_iter().map(|holder| Card {
            holder,
            jwts: Jwts::default(),
            rest: Rest::default(),
        });
        Arc::new(Agent {
            cards: cards.collect(),
            rights,
            own_uid,
            metrics,
            clock,
            callers: AtomicU64::new(0),
            places: Places::default(),
            stop,
        })
    }

    /// Its cards.
    #[must_use]
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// Works ahead on each card, on a thread each.
    pub fn work_ahead(self: &Arc<Self>) {
        for at in 0..self.cards.len() {
            let agent = Arc::clone(self);
            thread::spawn(move || {
                let card = &agent.cards[at];
                loop {
                    let next = card.holder.tick();
                    let renewal = card.jwts.tick(&card.holder);
                    let longest = renewal.map_or(next, |renewal| renewal.min(next));
                    card.rest.wait(longest, card.holder.holding.ahead_after);
                }
            });
        }
    }

    /// Serves one caller until it hangs up.
    pub fn converse(self: &Arc<Self>, stream: &UnixStream) {
        let Ok(credentials) = rustix::net::sockopt::socket_peercred(stream) else { return };
        let uid = credentials.uid.as_raw();
        let rights = self.rights.iter().find(|rights| rights.uid == uid);
        let kind = match rights {
            _ if uid == self.own_uid => Kind::Own,
            Some(_) => Kind::Other,
            None => Kind::Stranger,
        };
        let Some(_place) = self.places.take(uid, kind) else {
            LOG.line(format_args!(
                "too many callers of user {uid}, or in all; one was turned away"
            ));
            return;
        };
        let id = self.callers.fetch_add(1, Ordering::Relaxed) + 1;
        let _end = EndOfCaller { agent: self, id };
        // A caller that goes away in the middle is no fault of ours.
        let _ = match rights {
            Some(rights) => self.answer_all(stream, id, rights),
            None => turn_away(stream, uid),
        };
    }

    fn answer_all(&self, mut from: &UnixStream, id: CallerId, rights: &Rights) -> io::Result<()> {
        let gone = || has_hung_up(from);
        let caller = Caller { id, has_gone: &gone };
        while let Some(frame) = read_frame(&mut from)? {
            let received = self.clock.now();
            let Some(request) = decode::<Request>(&frame) else {
                return Ok(()); // not our protocol, or another version's: it sees the end
            };
            drop(frame);
            let (number, ends) = (request.number, request.call == Call::Stop);
            let answer = self.answer(&caller, rights, request, received);
            let ends = ends && answer.is_ok();
            let written = write_reply(from, number, answer);
            if ends {
                // Whoever asked for the end is told of it first.
                (self.stop)();
            }
            written?;
        }
        Ok(())
    }

    fn answer(
        &self,
        caller: &Caller<'_>,
        rights: &Rights,
        request: Request,
        received: Instant,
    ) -> Result<Answer, TokenError> {
        let uid = rights.uid;
        let deadline = received + request.within.min(WITHIN_MAX);
        match &request.call {
            Call::Metrics => return Ok(Answer::Text(self.metrics.text())),
            Call::Status => return Ok(Answer::Text(self.status())),
            Call::Stop if uid == self.own_uid || uid == 0 => return Ok(Answer::Done),
            Call::Stop => {
                let text = format!("user {uid} may not end the agent of user {}", self.own_uid);
                return Err(TokenError::Denied(text));
            }
            _ => {}
        }
        let card = self.card(&request.card)?;
        self.metrics.request(&card.holder.holding.name, request.call.name());
        // The last try of a PIN is the user's own whose card it is.
        let may_lock = uid == self.own_uid;
        let answer = card.answer(caller, rights, may_lock, request.call, deadline);
        card.rest.poke();
        answer
    }

    fn card(&self, name: &str) -> Result<&Card, TokenError> {
        let named = |card: &&Card| name.is_empty() || card.holder.holding.name == name;
        self.cards.iter().find(named).ok_or_else(|| {
            let names: Vec<&str> =
                self.cards.iter().map(|card| &card.holder.holding.name[..]).collect();
            let text = format!("the agent has no card \"{name}\"; it has {}", names.join(", "));
            TransportError::Gone(text).into()
        })
    }

    fn status(&self) -> String {
        let cards = self.cards.iter().map(|card| {
            let state = card.holder.state();
            let (pin, tries_left) = state.map(|(_, pin)| words(pin)).unzip();
            json!({
                "name": card.holder.holding.name,
                "session": state.map_or("at work", |(open, _)| if open { "open" } else { "closed" }),
                "pin": pin,
                "pin_tries_left": tries_left.flatten(),
                "waiting": card.holder.waiting(),
                "tokens": card.jwts.count(),
            })
        });
        let callers = self.places.taken();
        let cards: Vec<_> = cards.collect();
        json!({ "pid": std::process::id(), "callers": callers, "cards": cards }).to_string()
    }
}

impl Card {
    fn answer(
        &self,
        caller: &Caller<'_>,
        rights: &Rights,
        may_lock: bool,
        call: Call,
        deadline: Instant,
    ) -> Result<Answer, TokenError> {
        let holder = &self.holder;
        let bytes = |bytes: &[u8]| Answer::Bytes(Zeroizing::new(bytes.to_vec()));
        let may = |right: Right, key: &[u8]| {
            rights.check(right, &*holder.inventory(caller, deadline)?, key)
        };
        let wrong = || TokenError::Denied("the request cannot be: update its program".to_owned());
        Ok(match call {
            Call::Info => Answer::Info(holder.info(caller, deadline)?),
            Call::PinState => Answer::PinState(holder.pin_state(caller, deadline)?),
            Call::VerifyPin(pin) => {
                rights.allow_login()?;
                holder.verify_pin(caller, &pin, may_lock, deadline)?;
                Answer::Done
            }
            Call::Objects => {
                let mut inventory = holder.objects(caller, deadline)?;
                rights.show(&mut inventory);
                Answer::Objects(inventory)
            }
            Call::ReadFile(file) => bytes(&holder.read_file(caller, &file, deadline)?),
            Call::ReadPublicKey(id) => bytes(&holder.read_public_key(caller, &id, deadline)?),
            Call::Sign { key, input } => {
                may(Right::Sign, &key)?;
                let input = input.as_sign_input().ok_or_else(wrong)?;
                bytes(&holder.sign(caller, &key, input, deadline)?)
            }
            Call::Verify { key, input, signature } => {
                let input = input.as_sign_input().ok_or_else(wrong)?;
                let signature = signature[..].try_into().map_err(|_| wrong())?;
                Answer::Matches(holder.verify(caller, &key, input, signature, deadline)?)
            }
            Call::Derive { key, peer } => {
                may(Right::Derive, &key)?;
                let peer = peer[..].try_into().map_err(|_| wrong())?;
                bytes(holder.derive(caller, &key, peer, deadline)?.expose())
            }
            Call::Generate(key) => {
                may(Right::Generate, &key)?;
                let pair = holder.generate(caller, &key, deadline)?;
                Answer::Pair { public_id: pair.public_id, point: pair.point.to_vec() }
            }
            Call::Random(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > RANDOM_MAX_BYTES {
                    return Err(wrong());
                }
                Answer::Bytes(holder.random(caller, length, deadline)?)
            }
            Call::Jwt(request) => {
                let got = self.jwts.get(holder, caller, rights, &request, deadline)?;
                let (token, expires_s) = got;
                Answer::Jwt { token, expires_s }
            }
            Call::Metrics | Call::Status | Call::Stop => return Err(wrong()),
        })
    }
}

/// A PIN's standing and, if the card has said so, the tries that are left.
fn words(pin: PinStanding) -> (&'static str, Option<u8>) {
    match pin {
        PinStanding::None => ("none", None),
        PinStanding::Held => ("held", None),
        PinStanding::LastTry => ("held, not given: its last try is yours", Some(1)),
        PinStanding::Refused(tries_left) => ("refused", tries_left),
        PinStanding::Locked => ("locked", Some(0)),
        PinStanding::Expired => ("expired", None),
    }
}

/// Whatever ends a caller, a panic as well: what it was lent is free.
struct EndOfCaller<'a> {
    agent: &'a Agent,
    id: CallerId,
}

impl Drop for EndOfCaller<'_> {
    fn drop(&mut self) {
        for card in &self.agent.cards {
            card.holder.end_of_caller(self.id);
            card.rest.poke();
        }
    }
}

/// Someone without rights is told so, once.
fn turn_away(mut stream: &UnixStream, uid: u32) -> io::Result<()> {
    stream.set_read_timeout(Some(STRANGERS_PATIENCE))?;
    let Some(frame) = read_frame(&mut stream)? else { return Ok(()) };
    let Some(request) = decode::<Request>(&frame) else { return Ok(()) };
    let text = format!("user {uid} may not use this agent: add a [[caller]] with uid = {uid}");
    write_reply(stream, request.number, Err(TokenError::Denied(text)))
}

fn write_reply(
    mut to: &UnixStream,
    number: u32,
    answer: Result<Answer, TokenError>,
) -> io::Result<()> {
    let reply = encode(&Reply { number, answer })
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    to.write_all(&reply)
}

/// The next frame without its length; None at the end, and for a length that no frame has.
fn read_frame(from: &mut impl Read) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX_BYTES {
        return Ok(None);
    }
    // There may be a PIN in it: nothing else holds a copy, and no length that is only announced
    // takes room.
    let mut frame = Zeroizing::new(Vec::new());
    while frame.len() < length {
        let had = frame.len();
        let mut longer = Zeroizing::new(vec![0; length.min(had * 2 + ROOM_BYTES)]);
        longer[..had].copy_from_slice(&frame);
        from.read_exact(&mut longer[had..])?;
        frame = longer;
    }
    Ok(Some(frame))
}

/// Whether the caller has closed its end, or has died.
fn has_hung_up(stream: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut asked = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::RDHUP)];
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells the most that it was asked for at once.
    struct Asked<'a>(&'a [u8], usize);

    impl Read for Asked<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1.max(room.len());
            self.0.read(room)
        }
    }

    #[test]
    fn a_length_that_is_only_announced_takes_no_room() {
        let announced = (FRAME_MAX_BYTES as u32).to_be_bytes();
        let mut from = Asked(&announced, 0);
        assert!(read_frame(&mut from).is_err());
        assert!(from.1 <= ROOM_BYTES, "{}", from.1);
        for length in [0, 1, ROOM_BYTES, ROOM_BYTES + 1, FRAME_MAX_BYTES] {
            let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let frame = [&(length as u32).to_be_bytes()[..], &body].concat();
            assert_eq!(*read_frame(&mut &frame[..]).unwrap().unwrap(), body);
        }
    }
}
