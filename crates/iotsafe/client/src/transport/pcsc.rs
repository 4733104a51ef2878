// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PC/SC. The library is loaded when it is first needed, so that this module can be loaded on a
//! machine without it; the crate `pcsc` links it.
//!
//! `SCardTransmit` has no deadline and cannot be cancelled, so a separate thread makes the calls:
//! at the deadline the caller abandons it with any late answer. A program that allows its libraries
//! no threads has the calls made in its own, where they take as long as the reader takes.

mod sys;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use zeroize::Zeroizing;

use super::{Transport, TransportError, checked, without_le};
pub use sys::readers;
use worker::{Connection, Job, Outcome, Reply, Worker};

/// The most threads that may hang in a reader that does not answer.
const STUCK_MAX: usize = 4;

/// A card in a PC/SC reader.
pub struct Pcsc {
    reader: Option<String>,
    threads: bool,
    calls: Option<Calls>,
    stuck: Arc<AtomicUsize>,
}

/// Who makes the calls of a connection.
enum Calls {
    Thread(Worker),
    Caller(Connection),
}

impl Calls {
    /// None at the deadline: these calls cannot be used again.
    fn call(&mut self, job: Job, deadline: Instant) -> Option<Outcome> {
        match self {
            Calls::Thread(worker) => worker.call(job, deadline),
            Calls::Caller(_) if Instant::now() >= deadline => None,
            Calls::Caller(connection) => Some(connection.call(job)),
        }
    }
}

impl Pcsc {
    /// The first reader whose name contains `reader`, or the first with a card; connected when it
    /// is first used.
    #[must_use]
    pub fn new(reader: Option<&str>) -> Pcsc {
        let reader = reader.map(str::to_owned);
        Pcsc { reader, threads: true, calls: None, stuck: Arc::default() }
    }

    /// The same without a thread of its own: a reader that does not answer holds the caller.
    #[must_use]
    pub fn without_threads(reader: Option<&str>) -> Pcsc {
        Pcsc { threads: false, ..Pcsc::new(reader) }
    }

    fn call(&mut self, job: Job, deadline: Instant) -> Result<Reply, TransportError> {
        let mut calls = match self.calls.take() {
            Some(calls) => calls,
            None if self.threads => Calls::Thread(self.start_worker()?),
            None => Calls::Caller(Connection::new(self.reader.clone())),
        };
        match calls.call(job, deadline) {
            Some(Ok(reply)) => {
                self.calls = Some(calls);
                Ok(reply)
            }
            Some(Err(error)) => {
                // After a reset by another program the connection can be used; after other errors
                // it is made again.
                if error == TransportError::CardReset {
                    self.calls = Some(calls);
                }
                Err(error)
            }
            None => Err(TransportError::Timeout(self.name())),
        }
    }

    fn start_worker(&self) -> Result<Worker, TransportError> {
        if self.stuck.load(Ordering::Relaxed) >= STUCK_MAX {
            return Err(TransportError::Gone(format!(
                "{} does not answer: unplug it, or restart pcscd",
                self.name()
            )));
        }
        Worker::start(self.reader.clone(), Arc::clone(&self.stuck))
    }
}

impl Transport for Pcsc {
    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        match self.calls {
            Some(_) => Ok(()),
            None => self.reset(deadline).map(drop),
        }
    }

    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        if self.calls.is_none() {
            self.reset(deadline)?;
            return Err(TransportError::CardReset);
        }
        match self.call(Job::Transmit(Zeroizing::new(apdu.to_vec())), deadline)? {
            Reply::Answer(answer) => {
                checked(answer, "the reader").inspect_err(|_| self.calls = None)
            }
            Reply::Done => Err(TransportError::Garbled("no answer from the reader".to_owned())),
        }
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        match self.call(Job::Connect, deadline)? {
            Reply::Answer(atr) => Ok(atr),
            Reply::Done => Ok(Vec::new()),
        }
    }

    fn begin(&mut self, deadline: Instant) -> Result<(), TransportError> {
        if self.calls.is_none() {
            self.reset(deadline)?;
        }
        self.call(Job::Begin, deadline).map(drop)
    }

    fn end(&mut self) {
        match &mut self.calls {
            Some(Calls::Thread(worker)) => worker.send(Job::End),
            Some(Calls::Caller(connection)) => drop(connection.call(Job::End)),
            None => {}
        }
    }

    fn name(&self) -> String {
        self.reader.as_ref().map_or_else(|| "pcsc".to_owned(), |reader| format!("pcsc:{reader}"))
    }
}

/// T=0 has no Le after data (ISO 7816-3 section 12.2.2).
fn for_protocol(apdu: &[u8], t0: bool) -> &[u8] {
    if t0 { without_le(apdu) } else { apdu }
}
