// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The event loop: begins connections when their time comes, and sees each to its end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use openssl::ssl::SslSession;
use warifu_model::{Authentication, KeyShare, Keyword, Session, TlsVersion};
use warifu_open_loop::{Ended, Meter, Schedule, TICK, Totals, write_line};
use warifu_os::Alarm;

use super::config::{Config, PskConfig};
use super::connection::{Blueprint, Connection, Progress};
use super::outcome::Outcome;
use super::sessions::{Seen, Sessions};
use crate::context::{ClientContext, ClientCredentials};
use crate::error::Error;
use crate::key_store::KeyStore;
use crate::variant::Variant;

/// Sessions are got this many at a time.
const AT_ONCE: u32 = 4;
/// Times that getting a session may fail before the run is given up.
const MOST_FAILURES: u32 = 50;

/// Marks the timer among the sockets, which are marked by their trials.
const ALARM: Token = Token(usize::MAX);

/// Runs all connections and writes one line of JSON for each as it ends.
pub fn run(
    config: &Config,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(Totals),
    stop: &AtomicBool,
) -> Result<(Ended, Totals), Error> {
    let mut engine = Engine::new(config)?;
    let before =
        if engine.resumes() { engine.get_sessions(stop)? } else { engine.warm_up(stop)? };
    if before == Ended::Stopped {
        return Ok((Ended::Stopped, engine.totals));
    }
    let ended = engine.measure(output, progress, stop)?;
    Ok((ended, engine.totals))
}

struct Engine<'a> {
    config: &'a Config,
    client: Option<ClientContext>,
    key_store: Option<Arc<KeyStore>>,
    request: Vec<u8>,
    sessions: Sessions,
    poll: Poll,
    /// Ends a wait when the next connection is due.
    alarm: Alarm,
    /// By trial: a socket whose connect() is under way stands beside its connection.
    live: HashMap<u32, (Connection, Option<TcpStream>)>,
    totals: Totals,
}

impl<'a> Engine<'a> {
    fn new(config: &'a Config) -> Result<Engine<'a>, Error> {
        let key_store = config.key_store.as_ref().map(KeyStore::new).transpose()?;
        let client = match &config.variant {
            None => None,
            Some(variant) => {
                let mutual = variant.authentication == Authentication::Mutual;
                let mut credentials = ClientCredentials::read(&config.pki, mutual)?;
                if let (Some(key_store), Some((leaf, ..))) = (&key_store, &credentials.own) {
                    let key = key_store.key_of(leaf)?;
                    credentials = credentials.with_key(key);
                }
                credentials.psk = config.psk.as_ref().and_then(PskConfig::parsed);
                Some(ClientContext::new(variant, &credentials)?)
            }
        };
        let poll = Poll::new().map_err(system("waiting for sockets (epoll)"))?;
        let alarm = Alarm::new().map_err(system("timerfd_create"))?;
        poll.registry()
            .register(&mut SourceFd(&alarm.as_fd().as_raw_fd()), ALARM, Interest::READABLE)
            .map_err(system("watching the timer (epoll_ctl)"))?;
        Ok(Engine {
            config,
            client,
            key_store,
            request: config.request(),
            sessions: Sessions::default(),
            poll,
            alarm,
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
            while self.live.len() + ended.len() < missing.min(AT_ONCE as usize) {
                let connection = self.prepare(begun, true)?;
                self.begin(connection, &mut ended)?;
                begun += 1;
            }
            self.turn(&mut ended)?;
            for connection in ended.drain(..) {
                match (connection.outcome.error.as_ref(), connection.session()) {
                    (None, Some(session)) => {
                        self.check_ticket(&session)?;
                        self.sessions.add(session);
                    }
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

    /// Makes a connection that is not measured: the first one of two programs takes a sixth longer
    /// than those after it. A key store may take seconds for it, and wear; it is left alone.
    fn warm_up(&mut self, stop: &AtomicBool) -> Result<Ended, Error> {
        if self.key_store.is_some() {
            return Ok(Ended::Done);
        }
        let mut ended = Vec::new();
        let connection = self.prepare(0, false)?;
        self.begin(connection, &mut ended)?;
        // Whether it came to anything is of no account: a link may lose all of it.
        while ended.is_empty() {
            if stop.load(Ordering::Relaxed) {
                self.live.clear();
                return Ok(Ended::Stopped);
            }
            self.turn(&mut ended)?;
        }
        self.live.clear();
        Ok(Ended::Done)
    }

    fn check_ticket(&self, session: &SslSession) -> Result<(), Error> {
        let early = |variant: &Variant| variant.session == Session::EarlyData;
        if self.config.variant.as_ref().is_some_and(early) && session.max_early_data() == 0 {
            return Err(Error::Tls(
                "session is 0-rtt, but the server's tickets allow no early data; nginx takes it \
                 with `ssl_early_data on`"
                    .into(),
            ));
        }
        Ok(())
    }

    fn measure(
        &mut self,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(Totals),
        stop: &AtomicBool,
    ) -> Result<Ended, Error> {
        let pace = self.config.pace();
        let mut meter = Meter::start();
        // Packets that earlier connections left in the link's queues must not delay the first.
        let mut schedule = Schedule::new(&pace, meter.begun(), pace.alone);
        let mut ready: Option<Connection> = None;
        let mut ended = Vec::new();
        while schedule.has_more() || !self.live.is_empty() {
            if stop.load(Ordering::Relaxed) {
                self.live.clear();
                return Ok(Ended::Stopped);
            }
            let now = Instant::now();
            if ready.is_none()
                && let Some(trial) = schedule.to_prepare(now)
            {
                ready = Some(self.prepare(trial, false)?);
            }
            if schedule.may_begin(now, self.live.is_empty())
                && let Some(mut connection) = ready.take()
            {
                // Not `now`: preparing may have taken until after it was due.
                let late = Instant::now() - schedule.due();
                connection.outcome.late_ns = self.totals.note_late(late);
                self.begin(connection, &mut ended)?;
                schedule.begun();
            }
            if let Some(at) = schedule.wake_at(ready.is_some()) {
                self.alarm.set(at).map_err(system("timerfd_settime"))?;
            }
            self.turn(&mut ended)?;
            for connection in ended.drain(..) {
                let trial = connection.outcome.trial;
                self.report(connection, output)?;
                if let Some(key_store) = &self.key_store {
                    key_store.end_of_connection()?;
                }
                schedule.ended(trial, Instant::now());
            }
            meter.update(&mut self.totals, progress);
        }
        progress(self.totals);
        Ok(Ended::Done)
    }

    /// Waits for sockets once, and serves those that are ready. Connections that have ended do not
    /// wait for others.
    fn turn(&mut self, ended: &mut Vec<Connection>) -> Result<(), Error> {
        let mut events = Events::with_capacity(256);
        let wait = if ended.is_empty() { TICK } else { Duration::ZERO };
        match self.poll.poll(&mut events, Some(wait)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(system("waiting for sockets (epoll)")(error)),
        }
        for event in &events {
            if event.token() == ALARM {
                continue;
            }
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
                Some((ssl, Arc::new(Seen::new(client.variant().cipher_suite))))
            }
            None => None,
        };
        let is = |test: fn(&Variant) -> bool| !first && variant.is_some_and(test);
        Connection::prepare(
            trial,
            Blueprint {
                address: self.config.address,
                nagle: variant.is_some_and(|variant| variant.nagle),
                request: &self.request,
                early: is(|variant| variant.session == Session::EarlyData),
                prepared: is(|variant| {
                    variant.key_share == KeyShare::Prepared && variant.tls == TlsVersion::Tls13
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
                    .map_err(system("watching a socket (epoll_ctl)"))?;
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
        let timeout = self.config.pace().timeout();
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

    /// A run whose server does not do what the variant says measures something else.
    fn check_session(&self, outcome: &Outcome) -> Result<(), Error> {
        let Some(variant) = &self.config.variant else {
            return Ok(());
        };
        let refuse = |what: &str| {
            Err(Error::Tls(format!(
                "trial {}: session is {}, but the server {what}",
                outcome.trial,
                variant.session.name()
            )))
        };
        let age_ns = outcome.handshake_ns.saturating_sub(outcome.connect_ns);
        let early = variant.session == Session::EarlyData && age_ns < TICKET_AGE_ALLOWANCE_NS;
        match (outcome.resumed, variant.is_reused()) {
            (true, false) => refuse("took up an earlier one"),
            (false, true) if variant.psk.is_some() => refuse("did not take the key from outside"),
            (false, true) => refuse(
                "refused an earlier one; check that its session tickets are on and their keys are \
                 kept",
            ),
            _ if early && !outcome.early_data => refuse("refused the early data"),
            _ => Ok(()),
        }
    }

    fn report(&mut self, connection: Connection, output: &mut dyn Write) -> Result<(), Error> {
        let outcome = &connection.outcome;
        self.totals.count(outcome.error.is_some());
        if outcome.error.is_none() {
            self.check_session(outcome)?;
        }
        write_line(output, outcome).map_err(system("writing the results"))
    }
}

/// How long ClientHello may travel for its early data to be taken: TICKET_AGE_ALLOWANCE in
/// ssl/statem/statem_local.h, OpenSSL 3.0.
const TICKET_AGE_ALLOWANCE_NS: u64 = 10_000_000_000;

fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::System { what, source }
}
