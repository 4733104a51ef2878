// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection, and the thread that makes its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Instant;

use zeroize::Zeroizing;

use super::super::TransportError;
use super::for_protocol;
use super::sys::{Card, Context};

/// A request to the thread.
pub(super) enum Job {
    /// Connects, or resets what is connected; answered with the answer to reset.
    Connect,
    /// Answered with the answer APDU. The command may be VERIFY.
    Transmit(Zeroizing<Vec<u8>>),
    /// Begins a transaction.
    Begin,
    /// Ends it; not answered.
    End,
}

/// Its answer.
pub(super) enum Reply {
    Answer(Vec<u8>),
    Done,
}

pub(super) type Outcome = Result<Reply, TransportError>;

/// The caller's end; after it is dropped, the thread ends when its current call returns.
pub(super) struct Worker {
    jobs: SyncSender<Job>,
    replies: Receiver<Outcome>,
}

impl Worker {
    pub(super) fn start(
        reader: Option<String>,
        stuck: Arc<AtomicUsize>,
    ) -> Result<Worker, TransportError> {
        let (jobs, todo) = mpsc::sync_channel(1);
        // Capacity for one: a reply that nobody receives must not block the thread.
        let (done, replies) = mpsc::sync_channel(1);
        let named = thread::Builder::new().name("warifu-pcsc".to_owned());
        let body = move || {
            stuck.fetch_add(1, Ordering::Relaxed);
            serve(reader, &todo, &done, &stuck);
            stuck.fetch_sub(1, Ordering::Relaxed);
        };
        named.spawn(body).map_err(|error| {
            TransportError::Gone(format!("starting the PC/SC thread failed: {error}"))
        })?;
        Ok(Worker { jobs, replies })
    }

    /// None at the deadline: the worker cannot be used again.
    pub(super) fn call(&self, job: Job, deadline: Instant) -> Option<Outcome> {
        let ended = || Some(Err(TransportError::Gone("the PC/SC connection ended".to_owned())));
        if self.jobs.send(job).is_err() {
            return ended();
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match self.replies.recv_timeout(left) {
            Ok(said) => Some(said),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => ended(),
        }
    }

    /// A job without a reply.
    pub(super) fn send(&self, job: Job) {
        let _ = self.jobs.send(job); // the thread may have ended
    }
}

fn serve(
    reader: Option<String>,
    todo: &Receiver<Job>,
    done: &SyncSender<Outcome>,
    busy: &AtomicUsize,
) {
    let mut connection = Connection::new(reader);
    loop {
        // While it waits for a job it does not hang in a reader.
        busy.fetch_sub(1, Ordering::Relaxed);
        let job = todo.recv();
        busy.fetch_add(1, Ordering::Relaxed);
        let Ok(job) = job else { return };
        let answered = !matches!(job, Job::End);
        let said = connection.call(job);
        if answered && done.send(said).is_err() {
            return;
        }
    }
}

/// A connection to a card, made by its first job. Its calls take as long as the reader takes.
pub(super) struct Connection {
    reader: Option<String>,
    card: Option<Card>,
}

impl Connection {
    pub(super) fn new(reader: Option<String>) -> Connection {
        Connection { reader, card: None }
    }

    pub(super) fn call(&mut self, job: Job) -> Outcome {
        let Connection { reader, card } = self;
        let said = match job {
            Job::Connect => connect(reader.as_deref(), card).map(Reply::Answer),
            Job::Transmit(apdu) => {
                with(card, |card| card.transmit(for_protocol(&apdu, card.t0())).map(Reply::Answer))
            }
            Job::Begin => with(card, |card| card.begin().map(|()| Reply::Done)),
            Job::End => {
                card.iter().for_each(Card::end);
                Ok(Reply::Done)
            }
        };
        if matches!(said, Err(TransportError::CardReset)) {
            // Acknowledges the reset, so that the next call works.
            if let Some(card) = card {
                let _ = card.reconnect();
            }
        }
        said
    }
}

fn with(
    card: &Option<Card>,
    call: impl FnOnce(&Card) -> Result<Reply, TransportError>,
) -> Result<Reply, TransportError> {
    card.as_ref().map_or_else(|| Err(TransportError::CardReset), call)
}

fn connect(reader: Option<&str>, card: &mut Option<Card>) -> Result<Vec<u8>, TransportError> {
    if let Some(connected) = card
        && connected.reset().is_ok()
    {
        return connected.atr();
    }
    *card = None;
    let connected = card.insert(Context::new()?.connect(reader)?);
    connected.atr()
}
