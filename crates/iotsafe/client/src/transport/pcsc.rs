// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PC/SC. The library is loaded when it is first needed, so that a program can load this one on a
//! machine without it; that is why the crate `pcsc`, which links it, does not serve here.
//!
//! `SCardTransmit` has no deadline and cannot be cancelled. A thread of its own makes the calls:
//! at the deadline the caller leaves it, and whatever it still brings is dropped with it.

mod sys;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use zeroize::Zeroizing;

use super::csim::without_le;
use super::{Transport, TransportError, checked};
pub use sys::readers;
use worker::{Job, Reply, Worker};

/// How many threads may hang in a dead reader before it is given up.
const STUCK_MAX: usize = 4;

/// A card in a PC/SC reader.
pub struct Pcsc {
    reader: Option<String>,
    worker: Option<Worker>,
    stuck: Arc<AtomicUsize>,
}

impl Pcsc {
    /// The first reader whose name contains `reader`, or the first with a card; connected when it
    /// is first used.
    #[must_use]
    pub fn new(reader: Option<&str>) -> Pcsc {
        Pcsc { reader: reader.map(str::to_owned), worker: None, stuck: Arc::default() }
    }

    fn ask(&mut self, job: Job, deadline: Instant) -> Result<Reply, TransportError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.hire()?,
        };
        match worker.ask(job, deadline) {
            Some(Ok(reply)) => {
                self.worker = Some(worker);
                Ok(reply)
            }
            Some(Err(error)) => {
                // A reset by others leaves the connection of use; after anything else a new one
                // is made.
                if error == TransportError::CardReset {
                    self.worker = Some(worker);
                }
                Err(error)
            }
            None => Err(TransportError::Timeout(self.name())),
        }
    }

    fn hire(&self) -> Result<Worker, TransportError> {
        if self.stuck.load(Ordering::Relaxed) >= STUCK_MAX {
            return Err(TransportError::Gone(format!(
                "{} does not answer; unplug it, or restart pcscd",
                self.name()
            )));
        }
        Worker::start(self.reader.clone(), Arc::clone(&self.stuck))
    }
}

impl Transport for Pcsc {
    fn connect(&mut self, deadline: Instant) -> Result<(), TransportError> {
        match self.worker {
            Some(_) => Ok(()),
            None => self.reset(deadline).map(drop),
        }
    }

    fn exchange(&mut self, apdu: &[u8], deadline: Instant) -> Result<Vec<u8>, TransportError> {
        if self.worker.is_none() {
            self.reset(deadline)?;
            return Err(TransportError::CardReset);
        }
        match self.ask(Job::Transmit(Zeroizing::new(apdu.to_vec())), deadline)? {
            Reply::Answer(answer) => {
                checked(answer, "the reader").inspect_err(|_| self.worker = None)
            }
            Reply::Done => Err(TransportError::Garbled("the reader gave no answer".to_owned())),
        }
    }

    fn reset(&mut self, deadline: Instant) -> Result<Vec<u8>, TransportError> {
        match self.ask(Job::Connect, deadline)? {
            Reply::Answer(atr) => Ok(atr),
            Reply::Done => Ok(Vec::new()),
        }
    }

    fn begin(&mut self, deadline: Instant) -> Result<(), TransportError> {
        if self.worker.is_none() {
            self.reset(deadline)?;
        }
        self.ask(Job::Begin, deadline).map(drop)
    }

    fn end(&mut self) {
        if let Some(worker) = &self.worker {
            worker.tell(Job::End);
        }
    }

    fn name(&self) -> String {
        self.reader.as_ref().map_or_else(|| "pcsc".to_owned(), |reader| format!("pcsc:{reader}"))
    }
}

/// T=0 takes no Le behind data (ISO 7816-3 section 12.2.2).
fn for_protocol(apdu: &[u8], t0: bool) -> &[u8] {
    if t0 { without_le(apdu) } else { apdu }
}
