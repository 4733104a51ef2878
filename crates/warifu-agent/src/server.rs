// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agent on its socket: who calls, what they may, and what they get.

mod socket;

use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use warifu_token::agent::message::{
    Answer, Call, FRAME_MAX_BYTES, RANDOM_MAX_BYTES, Reply, Request, decode, encode,
};
use warifu_token::{TokenError, TransportError};
use zeroize::Zeroizing;

use crate::card::{Caller, CallerId, Holder, lock};
use crate::clock::Clock;
use crate::jwt::Jwts;
use crate::metrics::Metrics;
use crate::rights::{Right, Rights};
pub use socket::{Socket, SocketError};

/// The most callers at a time; each has a thread.
const CALLERS_MAX: usize = 256;
/// The longest that a caller waits, whatever it says: no turn is waited for longer.
const WITHIN_MAX: Duration = Duration::from_secs(600);

/// One card with its tokens.
pub struct Card {
    /// The card.
    pub holder: Holder,
    /// Its tokens.
    pub jwts: Jwts,
    /// What wakes the thread that works ahead.
    rest: (Mutex<Rest>, Condvar),
}

/// Whether the thread that works ahead rests for long, and whether it is to look again: while
/// callers come one after the other it is not woken for each.
#[derive(Default)]
struct Rest {
    long: bool,
    poked: bool,
}

/// What callers come to.
pub struct Agent {
    cards: Vec<Card>,
    rights: Vec<Rights>,
    own_uid: u32,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    callers: AtomicU64,
    connected: AtomicUsize,
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
            rest: Default::default(),
        });
        Arc::new(Agent {
            cards: cards.collect(),
            rights,
            own_uid,
            metrics,
            clock,
            callers: AtomicU64::new(0),
            connected: AtomicUsize::new(0),
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
                    card.wait(renewal.map_or(next, |renewal| renewal.min(next)));
                }
            });
        }
    }

    /// Serves one caller until it hangs up.
    pub fn converse(self: &Arc<Self>, stream: &UnixStream) {
        if self.connected.fetch_add(1, Ordering::Relaxed) < CALLERS_MAX {
            let id = self.callers.fetch_add(1, Ordering::Relaxed) + 1;
            // A caller that goes away in the middle is no fault of ours.
            let _ = self.answer_all(stream, id);
            for card in &self.cards {
                card.holder.end_of_caller(id);
                card.poke();
            }
        } else {
            eprintln!("warifu-agent: {CALLERS_MAX} callers are connected; one was turned away");
        }
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn answer_all(&self, stream: &UnixStream, id: CallerId) -> io::Result<()> {
        let uid = rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw();
        let rights = self.rights.iter().find(|rights| rights.uid == uid);
        let gone = || has_hung_up(stream);
        let caller = Caller { id, has_gone: &gone };
        let mut from = BufReader::new(stream);
        while let Some(frame) = read_frame(&mut from)? {
            let received = self.clock.now();
            let Some(request) = decode::<Request>(&frame) else {
                return Ok(()); // not our protocol, or another version's: it sees the end
            };
            drop(frame);
            let (number, ends) = (request.number, request.call == Call::Stop);
            let answer = match rights {
                Some(rights) => self.answer(&caller, uid, rights, request, received),
                None => Err(TokenError::Denied(format!(
                    "user {uid} may not use this agent: add a [[caller]] with uid = {uid}"
                ))),
            };
            let ends = ends && answer.is_ok();
            let reply = encode(&Reply { number, answer })
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            let mut to = stream;
            let written = to.write_all(&reply);
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
        uid: u32,
        rights: &Rights,
        request: Request,
        received: Instant,
    ) -> Result<Answer, TokenError> {
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
        let answer = card.answer(caller, rights, request.call, deadline);
        card.poke();
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
            json!({
                "name": card.holder.holding.name,
                "session": state.map_or("at work", |(open, _)| if open { "open" } else { "closed" }),
                "pin": state.map(|(_, held)| if held { "held" } else { "none" }),
                "waiting": card.holder.waiting(),
                "tokens": card.jwts.count(),
            })
        });
        let callers = self.connected.load(Ordering::Relaxed);
        let cards: Vec<_> = cards.collect();
        json!({ "pid": std::process::id(), "callers": callers, "cards": cards }).to_string()
    }
}

impl Card {
    fn answer(
        &self,
        caller: &Caller<'_>,
        rights: &Rights,
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
                holder.verify_pin(caller, &pin, deadline)?;
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

    /// Wakes the thread that works ahead, if it rests for long.
    fn poke(&self) {
        let mut rest = lock(&self.rest.0);
        if rest.long {
            (rest.long, rest.poked) = (false, true);
            self.rest.1.notify_one();
        }
    }

    fn wait(&self, longest: Duration) {
        let mut rest = lock(&self.rest.0);
        rest.long = longest > self.holder.holding.ahead_after;
        let end = Instant::now() + longest;
        while !rest.poked {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.rest.1.wait_timeout(rest, left);
            rest = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *rest = Rest::default();
    }
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
    let mut frame = Zeroizing::new(vec![0; length]);
    from.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Whether the caller has closed its end, or has died.
fn has_hung_up(stream: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut asked = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::RDHUP)];
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
