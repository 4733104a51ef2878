// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card behind a line with faults, on a virtual clock.
#![allow(dead_code, reason = "each test has its own use of it")]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use warifu_agent::card::{CardSettings, HeldPin, Holder, Login};
use warifu_agent::metrics::Metrics;
use warifu_agent::rights::Rights;
use warifu_agent::server::{Agent, Socket};
use warifu_agent_protocol::message::{Answer, Call};
use warifu_agent_protocol::{AgentClient, AgentToken};
use warifu_card::KeySource;
use warifu_card::faults::{FaultyCard, Outcome, Plan};
use warifu_card::object::{KeyAttributes, KeyType, Name, access};
use warifu_card::{ATR, Card, Pin, PinScope, Reset, Settings, StatusWord};
use warifu_iotsafe_client::{CardToken, Options, TokenError, Transport, TransportError};
use warifu_os::{Clock, VirtualClock};

pub const PIN: &str = "1234";
/// The logical channels of the virtual card, but the basic one.
const CHANNELS: usize = 3;
/// When the virtual clock starts: 2027-01-15, in time since the Unix epoch.
pub const UNIX_START: Duration = Duration::from_secs(1_800_000_000);
/// What a command and its answer take on the line.
const EXCHANGE: Duration = Duration::from_millis(5);

/// The card, what goes wrong with it, and what was sent to it.
pub struct World {
    pub card: FaultyCard,
    rng: ChaCha20Rng,
    /// Answers that came too late: the line gives them to whoever asks next.
    late: Vec<Vec<u8>>,
    pub commands: u64,
    /// How often something was selected on the basic channel, where a modem has its own.
    pub basic_selects: u64,
    pub resets: u64,
    /// Whether the card keeps to itself how many tries its PIN has left.
    pub hides_tries: bool,
    /// Whether the next command meets a mistake in the driver of the line.
    pub panics: bool,
}

impl World {
    pub fn new(pin: Option<PinScope>, plan: Plan, seed: u64) -> Arc<Mutex<World>> {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let card = usual_card(pin.map(|scope| Pin::new(PIN, scope, 3).unwrap()), &mut rng);
        let card = FaultyCard::new(card, plan, seed);
        let late = Vec::new();
        Arc::new(Mutex::new(World {
            card,
            rng,
            late,
            commands: 0,
            basic_selects: 0,
            resets: 0,
            hides_tries: false,
            panics: false,
        }))
    }

    /// Puts another card in its place, of the same objects with other keys, and another PIN.
    pub fn exchange(&mut self, pin: &str) {
        let pin = Pin::new(pin, PinScope::Signing, 3).unwrap();
        let card = usual_card(Some(pin), &mut self.rng);
        self.card = FaultyCard::new(card, Plan::Script(VecDeque::new()), 1);
    }

    /// Adds a key pair that callers may have made anew.
    pub fn add_pair(&mut self, id: u8, label: &str) {
        let card = self.card.card();
        let mut card = Card::from_bytes(&card.to_bytes()).unwrap();
        let name = Name::slot(id, label, access::READ | access::UPDATE);
        let attributes = KeyAttributes::general(KeyType::Secp256r1Persistent);
        card.add_key_pair(name, attributes, KeySource::Generate, &mut self.rng).unwrap();
        self.card = FaultyCard::new(card, Plan::Script(VecDeque::new()), 1);
    }

    /// Personalises a file.
    pub fn write_file(&mut self, id: u8, content: &[u8]) {
        let card = self.card.card();
        let mut card = Card::from_bytes(&card.to_bytes()).unwrap();
        card.write_file(&[id], content).unwrap();
        self.card = FaultyCard::new(card, Plan::Script(VecDeque::new()), 1);
    }

    /// How many logical channels the card has open, but the basic one.
    pub fn open_channels(&mut self) -> usize {
        let World { card, rng, .. } = self;
        let plan = card.replace_plan(Plan::Script(VecDeque::new()));
        let mut free = Vec::new();
        loop {
            match card.transmit(&[0, 0x70, 0, 0, 1], rng) {
                Outcome::Absent => {} // out for some more commands
                Outcome::Answer(answer) if answer.sw == StatusWord::OK => free.push(answer.data[0]),
                _ => break,
            }
        }
        for channel in &free {
            card.transmit(&[0, 0x70, 0x80, *channel], rng);
        }
        card.replace_plan(plan);
        CHANNELS - free.len()
    }

    /// Another program gives wrong PINs, and the card is reset.
    pub fn spend_tries(&mut self, times: usize) {
        let World { card, rng, .. } = self;
        card.transmit(&[0, 0xa4, 4, 0x0c, 7, 0xa0, 0, 0, 5, 0x59, 0, 0x10], rng);
        for _ in 0..times {
            let wrong = [b'9', b'9', b'9', b'9', 0xff, 0xff, 0xff, 0xff];
            card.transmit(&[&[0, 0x20, 0, 1, 8][..], &wrong].concat(), rng);
        }
        card.reset(Reset::Cold);
    }

    pub fn tries_left(&self) -> u8 {
        self.card.card().settings().pin.as_ref().unwrap().tries_left()
    }
}

fn usual_card(pin: Option<Pin>, rng: &mut ChaCha20Rng) -> Card {
    Card::with_usual_slots(Settings { pin, ..Settings::default() }, rng).unwrap()
}

/// A line to the card that keeps late answers for the next command, as a serial line would.
pub struct Line {
    pub world: Arc<Mutex<World>>,
    pub clock: VirtualClock,
    /// Whether a reset is the card's, or that of the line alone, as behind a modem.
    pub resets: bool,
}

impl Line {
    fn late(&self, deadline: Instant) -> TransportError {
        self.clock.advance_to(deadline);
        TransportError::Timeout("the card".to_owned())
    }
}

impl Transport for Line {
    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let mut world = locked(&self.world);
        assert!(!std::mem::take(&mut world.panics), "a mistake, made for a test");
        if !world.late.is_empty() {
            return Ok(world.late.remove(0));
        }
        world.commands += 1;
        world.basic_selects += u64::from(apdu.starts_with(&[0, 0xa4]));
        let World { card, rng, .. } = &mut *world;
        let mut outcome = card.transmit(apdu, rng);
        if let (true, Outcome::Answer(answer)) = (world.hides_tries, &mut outcome)
            && answer.sw.0 & 0xfff0 == 0x63c0
        {
            answer.sw = StatusWord::SECURITY_STATUS;
        }
        let (answer, by) = match outcome {
            Outcome::Answer(response) => (response.to_bytes(), EXCHANGE),
            Outcome::Late { response, by } => {
                (response.to_bytes(), EXCHANGE + Duration::from_nanos(by.0))
            }
            Outcome::Lost => return Err(self.late(deadline)),
            Outcome::Absent => return Err(TransportError::Gone("no card".to_owned())),
            Outcome::Reset => return Err(TransportError::CardReset),
        };
        if self.clock.now() + by > deadline {
            world.late.push(answer);
            return Err(self.late(deadline));
        }
        self.clock.advance(by);
        Ok(answer)
    }

    fn reset(&mut self, _deadline: Instant) -> Result<Vec<u8>, TransportError> {
        let mut world = locked(&self.world);
        self.clock.advance(EXCHANGE);
        world.late.clear();
        world.resets += 1;
        if !self.resets {
            return Ok(Vec::new());
        }
        world.card.reset(Reset::Cold);
        Ok(ATR.to_vec())
    }

    fn resets_card(&self) -> bool {
        self.resets
    }

    fn shares_channels(&self) -> bool {
        false
    }

    fn name(&self) -> String {
        "a line with faults".to_owned()
    }
}

/// An agent with one card, on a socket.
pub struct Bench {
    pub world: Arc<Mutex<World>>,
    pub clock: VirtualClock,
    pub metrics: Arc<Metrics>,
    pub agent: Arc<Agent>,
    pub path: PathBuf,
    _socket: Socket,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub fn new(world: Arc<Mutex<World>>, pin: Option<&str>, rights: Vec<Rights>) -> Bench {
        Bench::with(world, pin, None, rights)
    }

    /// With a card behind a modem, which no reset reaches.
    pub fn behind_a_modem(world: Arc<Mutex<World>>, pin: &str, lifetime: Duration) -> Bench {
        Bench::on_line(world, Some(pin), Some(lifetime), Vec::new(), false)
    }

    pub fn with(
        world: Arc<Mutex<World>>,
        pin: Option<&str>,
        lifetime: Option<Duration>,
        rights: Vec<Rights>,
    ) -> Bench {
        Bench::on_line(world, pin, lifetime, rights, true)
    }

    fn on_line(
        world: Arc<Mutex<World>>,
        pin: Option<&str>,
        lifetime: Option<Duration>,
        rights: Vec<Rights>,
        resets: bool,
    ) -> Bench {
        let clock = VirtualClock::starting_at(UNIX_START);
        let line = Line { world: Arc::clone(&world), clock: clock.clone(), resets };
        let token = CardToken::new(Box::new(line), Options::default());
        let metrics = Arc::new(Metrics::default());
        let login = Login::new(pin.and_then(|pin| HeldPin::new(pin.as_bytes())), lifetime);
        let time: Arc<dyn Clock> = Arc::new(clock.clone());
        let settings = CardSettings::new("card");
        let holder = Holder::new(token, login, settings, time.clone(), Arc::clone(&metrics), 1);
        let stop = Box::new(|| panic!("a mistake, made for a test"));
        let agent = Agent::new(vec![holder], rights, Arc::clone(&metrics), time, stop);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let socket = Socket::open(&path, false).unwrap();
        socket.start(&agent).unwrap();
        Bench { world, clock, metrics, agent, path, _socket: socket, _folder: folder }
    }

    pub fn holder(&self) -> &Holder {
        &self.agent.cards()[0].holder
    }

    pub fn client(&self) -> AgentClient {
        AgentClient::new(&self.path, None)
    }

    pub fn token(&self) -> AgentToken {
        AgentToken::new(self.client())
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        locked(&self.world)
    }

    /// All work ahead that there is.
    pub fn idle(&self) {
        self.clock.advance(self.holder().settings.ahead_after);
        while self.holder().tick().is_zero() {}
    }

    /// What `warifu agent status` prints.
    pub fn status(&self) -> String {
        match ask(&mut self.client(), Call::Status) {
            Ok(Answer::Text(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    pub fn metric(&self, line: &str) -> u64 {
        let text = self.metrics.text();
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        found.map_or(0, |value| value.trim().parse().unwrap())
    }
}

pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

pub fn jwt(answer: Result<Answer, TokenError>) -> String {
    match answer {
        Ok(Answer::Jwt { token, .. }) => token,
        other => panic!("{other:?}"),
    }
}

pub fn ask(client: &mut AgentClient, call: Call) -> Result<Answer, TokenError> {
    client.call(call, soon())
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
