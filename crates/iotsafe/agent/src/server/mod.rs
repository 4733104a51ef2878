// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent on its socket: callers, their rights, and the answers to their requests.

mod caller_slots;
mod socket;
mod timed;
mod wakeup;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use warifu_agent_protocol::message::{
    Answer, Call, RANDOM_MAX_BYTES, REQUEST_MAX_BYTES, Reply, Request, decode, encode,
};
use warifu_iotsafe_client::{TokenError, TransportError};
use warifu_os::Clock;
use zeroize::Zeroizing;

use crate::LOG;
use crate::card::{Caller, CallerId, Holder, PinStatus, Tries, lock};
use crate::jwt::Jwts;
use crate::metrics::Metrics;
use crate::rights::{Right, Rights};
use caller_slots::{CallerSlot, CallerSlots, UserKind};
pub use socket::{Socket, SocketError};
use timed::Timed;
use wakeup::Wakeup;

/// How long a caller without rights may take to send its request, which is refused.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long between two reports of refused connections.
const REFUSAL_PAUSE: Duration = Duration::from_secs(60);
/// How much memory a frame is given before as many bytes of it have arrived.
const FIRST_READ_BYTES: usize = 4096;
/// The longest timeout of a request, whatever the caller asks for.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// One card with its tokens.
pub struct Card {
    /// The card.
    pub holder: Holder,
    /// Its tokens.
    pub jwts: Jwts,
    /// Wakes the thread that works ahead.
    wakeup: Wakeup,
}

/// The agent.
pub struct Agent {
    cards: Vec<Card>,
    rights: Vec<Rights>,
    own_uid: u32,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    callers: AtomicU64,
    slots: Arc<CallerSlots>,
    /// When a refused connection was last reported.
    refusal_reported: Mutex<Option<Instant>>,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl Agent {
    /// An agent with these cards. With empty `rights` only the agent's own user may call; `stop` is
    /// called when a caller asks the agent to end.
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
        let others: Vec<u32> =
            rights.iter().map(|rights| rights.uid).filter(|&uid| uid != own_uid).collect();
        let cards = holders.into_iter().map(|holder| Card {
            holder,
            jwts: Jwts::default(),
            wakeup: Wakeup::default(),
        });
        Arc::new(Agent {
            cards: cards.collect(),
            rights,
            own_uid,
            metrics,
            clock,
            callers: AtomicU64::new(0),
            slots: CallerSlots::new(others),
            refusal_reported: Mutex::default(),
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
                    card.wakeup.wait(longest, card.holder.settings.ahead_after);
                }
            });
        }
    }

    /// A slot for the caller at the other end of a connection, before it costs a thread.
    fn admit(&self, stream: &UnixStream) -> Option<CallerSlot> {
        let uid = rustix::net::sockopt::socket_peercred(stream).ok()?.uid.as_raw();
        let kind = match self.rights_of(uid) {
            _ if uid == self.own_uid => UserKind::Own,
            Some(_) => UserKind::WithRights,
            None => UserKind::WithoutRights,
        };
        let slot = self.slots.take(uid, kind);
        if slot.is_none() {
            self.report_refusal(uid);
        }
        slot
    }

    /// Not for each of thousands: whoever can connect could fill the log with them.
    fn report_refusal(&self, uid: u32) {
        let now = Instant::now();
        let mut reported = lock(&self.refusal_reported);
        if reported.is_none_or(|last| now.saturating_duration_since(last) >= REFUSAL_PAUSE) {
            *reported = Some(now);
            LOG.line(format_args!(
                "too many connections, of user {uid} or of all such users: refused (said once a \
                 minute)"
            ));
        }
    }

    fn rights_of(&self, uid: u32) -> Option<&Rights> {
        self.rights.iter().find(|rights| rights.uid == uid)
    }

    /// Serves one caller until it closes its connection.
    fn serve(self: &Arc<Self>, stream: &UnixStream, slot: CallerSlot) {
        let uid = slot.uid();
        let rights = self.rights_of(uid);
        let id = self.callers.fetch_add(1, Ordering::Relaxed) + 1;
        let _end = EndOfCaller { agent: self, id };
        // A caller may disconnect at any time.
        let _ = match rights {
            Some(rights) => self.serve_requests(stream, id, rights),
            None => refuse(stream, uid),
        };
    }

    fn serve_requests(&self, from: &UnixStream, id: CallerId, rights: &Rights) -> io::Result<()> {
        let gone = || has_hung_up(from);
        let caller = Caller { id, uid: rights.uid, has_gone: &gone };
        while let Some(frame) = read_frame(&mut Timed::whenever(from))? {
            let received = self.clock.now();
            let Some(request) = decode::<Request>(&frame) else {
                return Ok(()); // not this protocol, or another version of it: disconnect
            };
            drop(frame);
            let (number, ends) = (request.number, request.call == Call::Stop);
            let answer = self.answer(&caller, rights, request, received);
            let ends = ends && answer.is_ok();
            let written = write_reply(from, number, answer);
            if ends {
                // After the reply, so that the caller gets it.
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
        let deadline = received + request.timeout.min(TIMEOUT_MAX);
        match &request.call {
            Call::Metrics => return Ok(Answer::Text(self.metrics.text())),
            Call::Status => return Ok(Answer::Text(self.status())),
            Call::Stop if uid == self.own_uid || uid == 0 => return Ok(Answer::Done),
            Call::Stop => {
                let text = format!("user {uid} may not stop the agent of user {}", self.own_uid);
                return Err(TokenError::Denied(text));
            }
            _ => {}
        }
        let card = self.card(&request.card)?;
        self.metrics.request(&card.holder.settings.name, request.call.name());
        let tries = match uid == self.own_uid {
            true => Tries::All,
            false if rights.may.contains(&Right::Login) => Tries::ButTwo,
            false => Tries::None,
        };
        let answer = card.answer(caller, rights, tries, request.call, deadline);
        card.wakeup.notify();
        answer
    }

    fn card(&self, name: &str) -> Result<&Card, TokenError> {
        let named = |card: &&Card| name.is_empty() || card.holder.settings.name == name;
        self.cards.iter().find(named).ok_or_else(|| {
            let names: Vec<&str> =
                self.cards.iter().map(|card| &card.holder.settings.name[..]).collect();
            let text = format!("the agent has no card \"{name}\"; it has {}", names.join(", "));
            TransportError::Gone(text).into()
        })
    }

    fn status(&self) -> String {
        let cards = self.cards.iter().map(|card| {
            let state = card.holder.state();
            let (pin, tries_left) = state.map(|(_, pin)| pin_status(pin)).unzip();
            json!({
                "name": card.holder.settings.name,
                "session": state.map_or("busy", |(open, _)| if open { "open" } else { "closed" }),
                "pin": pin,
                "pin_tries_left": tries_left.flatten(),
                "waiting": card.holder.waiting(),
                "tokens": card.jwts.count(),
            })
        });
        let callers = self.slots.taken();
        let cards: Vec<_> = cards.collect();
        json!({ "pid": std::process::id(), "callers": callers, "cards": cards }).to_string()
    }
}

impl Card {
    fn answer(
        &self,
        caller: &Caller<'_>,
        rights: &Rights,
        tries: Tries,
        call: Call,
        deadline: Instant,
    ) -> Result<Answer, TokenError> {
        let holder = &self.holder;
        let bytes = |bytes: &[u8]| Answer::Bytes(Zeroizing::new(bytes.to_vec()));
        let may = |right: Right, key: &[u8]| {
            // Before a turn at the card, which the list of its keys may take.
            rights.allow_without_key(right)?;
            rights.check(right, &*holder.inventory(caller, deadline)?, key)
        };
        let malformed =
            || TokenError::Denied("malformed request: update the client program".to_owned());
        Ok(match call {
            Call::Info => Answer::Info(holder.info(caller, deadline)?),
            Call::PinState => Answer::PinState(holder.pin_state(caller, deadline)?),
            Call::VerifyPin(pin) => {
                rights.allow_pin()?;
                holder.verify_pin(caller, &pin, tries, deadline)?;
                Answer::Done
            }
            Call::Objects => {
                let mut inventory = holder.objects(caller, deadline)?;
                rights.filter(&mut inventory);
                Answer::Objects(inventory)
            }
            Call::ReadFile(id) => bytes(&holder.read_file(caller, &id, deadline)?),
            Call::ReadPublicKey(id) => bytes(&holder.read_public_key(caller, &id, deadline)?),
            Call::Sign { key, input } => {
                may(Right::Sign, &key)?;
                let input = input.as_sign_input().ok_or_else(malformed)?;
                bytes(&holder.sign(caller, &key, input, deadline)?)
            }
            Call::Verify { key, input, signature } => {
                rights.allow_without_key(Right::Verify)?;
                let input = input.as_sign_input().ok_or_else(malformed)?;
                let signature = signature[..].try_into().map_err(|_| malformed())?;
                Answer::Matches(holder.verify(caller, &key, input, signature, deadline)?)
            }
            Call::Derive { key, peer } => {
                may(Right::Derive, &key)?;
                let peer = peer[..].try_into().map_err(|_| malformed())?;
                bytes(holder.derive(caller, &key, peer, deadline)?.expose())
            }
            Call::Generate(key) => {
                may(Right::Generate, &key)?;
                if holder.has_kept_pair(caller, &key, deadline)? {
                    may(Right::Replace, &key)?;
                }
                let pair = holder.generate(caller, &key, deadline)?;
                Answer::Pair { public_id: pair.public_id, point: pair.point.to_vec() }
            }
            Call::GiveBack(key) => {
                holder.give_back(caller, &key);
                Answer::Done
            }
            Call::Random(length) => {
                rights.allow_without_key(Right::Random)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > RANDOM_MAX_BYTES {
                    return Err(malformed());
                }
                Answer::Bytes(holder.random(caller, length, deadline)?)
            }
            Call::Jwt(request) => {
                let got = self.jwts.get(holder, caller, rights, &request, deadline)?;
                let (token, expires_s) = got;
                Answer::Jwt { token, expires_s }
            }
            Call::Metrics | Call::Status | Call::Stop => return Err(malformed()),
        })
    }
}

/// The status of a PIN and, if the card reports them, the tries that are left.
fn pin_status(pin: PinStatus) -> (&'static str, Option<u8>) {
    match pin {
        PinStatus::None => ("none", None),
        PinStatus::Held => ("held", None),
        PinStatus::LastTry => ("held, not sent: only one try is left", Some(1)),
        PinStatus::Refused(tries_left) => ("refused", tries_left),
        PinStatus::Locked => ("locked", Some(0)),
        PinStatus::Expired => ("expired", None),
    }
}

/// Frees what a caller was lent when it ends, even by a panic.
struct EndOfCaller<'a> {
    agent: &'a Agent,
    id: CallerId,
}

impl Drop for EndOfCaller<'_> {
    fn drop(&mut self) {
        for card in &self.agent.cards {
            card.holder.end_of_caller(self.id);
            card.wakeup.notify();
        }
    }
}

/// Answers one request of a caller without rights with an error.
fn refuse(stream: &UnixStream, uid: u32) -> io::Result<()> {
    let Some(frame) = read_frame(&mut Timed::within(stream, REFUSAL_TIMEOUT))? else {
        return Ok(());
    };
    let Some(request) = decode::<Request>(&frame) else { return Ok(()) };
    let text = format!("user {uid} may not use this agent: add a [[caller]] with uid = {uid}");
    write_reply(stream, request.number, Err(TokenError::Denied(text)))
}

fn write_reply(to: &UnixStream, number: u32, answer: Result<Answer, TokenError>) -> io::Result<()> {
    let reply = encode(&Reply { number, answer })
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Timed::now(to).write_all(&reply)
}

/// The next frame without its length; None at the end, and for a length that is too long.
fn read_frame(from: &mut impl Read) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > REQUEST_MAX_BYTES {
        return Ok(None);
    }
    // It may contain a PIN: there is no other copy of it. And a caller that only announces a long
    // frame gets no memory for it.
    let mut frame = Zeroizing::new(Vec::new());
    while frame.len() < length {
        let had = frame.len();
        let mut longer = Zeroizing::new(vec![0; length.min(had * 2 + FIRST_READ_BYTES)]);
        longer[..had].copy_from_slice(&frame);
        from.read_exact(&mut longer[had..])?;
        frame = longer;
    }
    Ok(Some(frame))
}

/// Whether the caller has closed the connection.
fn has_hung_up(stream: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut asked = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::RDHUP)];
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the largest read.
    struct LargestRead<'a>(&'a [u8], usize);

    impl Read for LargestRead<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1.max(room.len());
            self.0.read(room)
        }
    }

    #[test]
    fn announced_frame_length_allocates_nothing() {
        let announced = (REQUEST_MAX_BYTES as u32).to_be_bytes();
        let mut from = LargestRead(&announced, 0);
        assert!(read_frame(&mut from).is_err());
        assert!(from.1 <= FIRST_READ_BYTES, "{}", from.1);
        for length in [0, 1, FIRST_READ_BYTES, FIRST_READ_BYTES + 1, REQUEST_MAX_BYTES] {
            let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let frame = [&(length as u32).to_be_bytes()[..], &body].concat();
            assert_eq!(*read_frame(&mut &frame[..]).unwrap().unwrap(), body);
        }
    }
}
