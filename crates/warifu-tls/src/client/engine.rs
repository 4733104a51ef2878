// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event loop: begins connections when their time comes, and sees each to its end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::config::Config;
use super::connection::{Blueprint, Connection, Progress};
use super::sessions::{Sessions, Signatures};
use crate::context::{ClientContext, ClientCredentials};
use crate::error::Error;
use crate::variant::{Authentication, KeyShare, Session, Tls};

/// How often timeouts and the wish to stop are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How far ahead a connection is prepared, so that its beginning is not delayed by it.
const AHEAD: Duration = Duration::from_millis(5);
/// Sessions are got this many at a time.
const AT_ONCE: u32 = 4;
/// Times that getting a session may fail before the run is given up.
const MOST_FAILURES: u32 = 50;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every connection has ended.
    Done,
    /// The wish to stop was heard; connections under way were closed and are not reported.
    Stopped,
}

/// What a run did, besides its outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections reported.
    pub reported: u32,
    /// Those of them that failed.
    pub failed: u32,
    /// The latest beginning of a connection after its time, ns.
    pub latest_ns: u64,
}

/// Runs all connections and writes one line of JSON for each as it ends.
pub fn run(
    config: &Config,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(Totals),
    stop: &AtomicBool,
) -> Result<(Ended, Totals), Error> {
    let mut engine = Engine::new(config)?;
    if engine.resumes() && engine.get_sessions(stop)? == Ended::Stopped {
        return Ok((Ended::Stopped, engine.totals));
    }
    let ended = engine.measure(output, progress, stop)?;
    Ok((ended, engine.totals))
}

struct Engine<'a> {
    config: &'a Config,
    client: Option<ClientContext>,
    request: Vec<u8>,
    sessions: Sessions,
    poll: Poll,
    /// By trial: a socket whose connect() is under way stands beside its connection.
    live: HashMap<u32, (Connection, Option<TcpStream>)>,
    totals: Totals,
}

impl<'a> Engine<'a> {
    fn new(config: &'a Config) -> Result<Engine<'a>, Error> {
        let client = match &config.variant {
            None => None,
            Some(variant) => {
                let mutual = variant.authentication == Authentication::Mutual;
                let credentials = ClientCredentials::read(&config.pki, mutual)?;
                Some(ClientContext::new(variant, &credentials)?)
            }
        };
        Ok(Engine {
            config,
            client,
            request: config.request(),
            sessions: Sessions::default(),
            poll: Poll::new().map_err(system("epoll cannot be used"))?,
            live: HashMap::new(),
            totals: Totals::default(),
        })
    }

    fn resumes(&self) -> bool {
        self.config.variant.as_ref().is_some_and(|variant| variant.session.is_resumed())
    }

    /// Makes full connections until there are sessions enough. Lost ones are tried again.
    fn get_sessions(&mut self, stop: &AtomicBool) -> Result<Ended, Error> {
        let wanted = self.config.sessions.min(self.config.trials) as usize;
        let mut begun = 0;
        let mut failures = 0;
        let mut ended = Vec::new();
        while self.sessions.len() < wanted {
            if stop.load(Ordering::Relaxed) {
                self.live.clear();
                return Ok(Ended::Stopped);
            }
            let missing = wanted - self.sessions.len();
            while self.live.len() < missing.min(AT_ONCE as usize) {
                let connection = self.prepare(begun, true)?;
                self.begin(connection, &mut ended)?;
                begun += 1;
            }
            self.turn(TICK, &mut ended)?;
            for connection in ended.drain(..) {
                match (connection.outcome.error.as_ref(), connection.session()) {
                    (None, Some(session)) => self.sessions.add(session),
                    (error, _) => {
                        failures += 1;
                        if failures > MOST_FAILURES {
                            let why = error.map_or("the server gave no session", String::as_str);
                            return Err(Error::Tls(format!("no session to resume: {why}")));
                        }
                    }
                }
            }
        }
        self.live.clear();
        Ok(Ended::Done)
    }

    fn measure(
        &mut self,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(Totals),
        stop: &AtomicBool,
    ) -> Result<Ended, Error> {
        let mut pauses = Pauses::new(self.config);
        let begun = Instant::now();
        let mut due = begun + AHEAD;
        let mut next = 0;
        let mut ready: Option<Connection> = None;
        let mut ended = Vec::new();
        let mut told = begun;
        while next < self.config.trials || !self.live.is_empty() {
            if stop.load(Ordering::Relaxed) {
                self.live.clear();
                return Ok(Ended::Stopped);
            }
            let now = Instant::now();
            if next < self.config.trials && ready.is_none() && now + AHEAD >= due {
                ready = Some(self.prepare(next, false)?);
            }
            if now >= due
                && let Some(mut connection) = ready.take()
            {
                let late = u64::try_from((now - due).as_nanos()).unwrap_or(u64::MAX);
                connection.outcome.late_ns = late;
                self.totals.latest_ns = self.totals.latest_ns.max(late);
                self.begin(connection, &mut ended)?;
                next += 1;
                due += pauses.next();
            }
            let wait = match (next < self.config.trials, ready.is_some()) {
                (false, _) => TICK,
                (true, false) => (due - AHEAD).saturating_duration_since(Instant::now()).min(TICK),
                (true, true) => due.saturating_duration_since(Instant::now()).min(TICK),
            };
            self.turn(wait, &mut ended)?;
            for connection in ended.drain(..) {
                self.report(connection, output)?;
            }
            if told.elapsed() >= Duration::from_secs(1) {
                progress(self.totals);
                told = Instant::now();
            }
        }
        progress(self.totals);
        Ok(Ended::Done)
    }

    /// Waits for sockets once, and serves those that are ready.
    fn turn(&mut self, wait: Duration, ended: &mut Vec<Connection>) -> Result<(), Error> {
        let mut events = Events::with_capacity(256);
        match self.poll.poll(&mut events, Some(wait)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(system("epoll cannot be used")(error)),
        }
        for event in &events {
            let trial = event.token().0 as u32;
            if let Some((connection, connecting)) = self.live.get_mut(&trial) {
                let result = match connecting.take() {
                    Some(socket) => connection.connected(socket),
                    None => connection.drive(),
                };
                self.settle(trial, result, ended);
            }
        }
        self.expire(ended);
        Ok(())
    }

    fn prepare(&mut self, trial: u32, first: bool) -> Result<Connection, Error> {
        let variant = self.config.variant.as_ref();
        let tls = match &self.client {
            Some(client) => {
                let ssl = match first {
                    true => client.first()?,
                    false => client.measured(self.sessions.take().as_ref())?,
                };
                Some((ssl, Arc::<Signatures>::default()))
            }
            None => None,
        };
        let is = |test: fn(&crate::Variant) -> bool| !first && variant.is_some_and(test);
        Connection::prepare(
            trial,
            Blueprint {
                address: self.config.address,
                nagle: variant.is_some_and(|variant| variant.nagle),
                request: &self.request,
                early: is(|variant| variant.session == Session::ZeroRtt),
                prepared: is(|variant| {
                    variant.key_share == KeyShare::Prepared && variant.tls == Tls::V1_3
                }),
                tls,
            },
        )
    }

    fn begin(
        &mut self,
        mut connection: Connection,
        ended: &mut Vec<Connection>,
    ) -> Result<(), Error> {
        let trial = connection.outcome.trial;
        match connection.start() {
            Ok(mut socket) => {
                let both = Interest::READABLE | Interest::WRITABLE;
                self.poll
                    .registry()
                    .register(&mut socket, Token(trial as usize), both)
                    .map_err(system("a socket cannot be watched"))?;
                self.live.insert(trial, (connection, Some(socket)));
            }
            Err(why) => {
                connection.outcome.error = Some(why);
                ended.push(connection);
            }
        }
        Ok(())
    }

    /// Ends the connection if its result says so.
    fn settle(
        &mut self,
        trial: u32,
        result: Result<Progress, String>,
        ended: &mut Vec<Connection>,
    ) {
        let error = match result {
            Ok(Progress::Waits) => return,
            Ok(Progress::Done) => None,
            Err(why) => Some(why),
        };
        if let Some((mut connection, _)) = self.live.remove(&trial) {
            connection.outcome.error = error;
            if let Some(socket) = connection.close() {
                // The descriptor is closed next, which ends the watch in any case.
                let _ = self.poll.registry().deregister(socket);
            }
            ended.push(connection);
        }
    }

    fn expire(&mut self, ended: &mut Vec<Connection>) {
        let now = Instant::now();
        let timeout = Duration::from_secs_f64(self.config.timeout_s);
        let over: Vec<u32> = self
            .live
            .iter()
            .filter(|(_, (connection, _))| connection.age(now) >= timeout)
            .map(|(&trial, _)| trial)
            .collect();
        for trial in over {
            self.settle(trial, Err("timeout".into()), ended);
        }
    }

    fn report(&mut self, connection: Connection, output: &mut dyn Write) -> Result<(), Error> {
        let outcome = &connection.outcome;
        self.totals.reported += 1;
        self.totals.failed += u32::from(outcome.error.is_some());
        let resumes = self.resumes();
        if outcome.error.is_none() && outcome.resumed != resumes {
            return Err(Error::Tls(format!(
                "trial {}: the server {} an earlier session, which the variant does not ask for",
                outcome.trial,
                if outcome.resumed { "took up" } else { "refused" }
            )));
        }
        let mut line = serde_json::to_vec(outcome)
            .map_err(|error| Error::Tls(format!("an outcome cannot be written: {error}")))?;
        line.push(b'\n');
        output.write_all(&line).and_then(|()| output.flush()).map_err(system("the output failed"))
    }
}

/// The times between beginnings.
struct Pauses {
    random: Xoshiro256PlusPlus,
    mean_s: f64,
    spread: f64,
}

impl Pauses {
    fn new(config: &Config) -> Pauses {
        Pauses {
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            mean_s: 1.0 / config.rate_per_second,
            spread: config.spread,
        }
    }

    fn next(&mut self) -> Duration {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(self.mean_s * (1.0 + self.spread * (2.0 * uniform - 1.0)))
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::System { what, source }
}
