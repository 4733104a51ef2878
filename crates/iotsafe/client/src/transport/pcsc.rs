// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PC/SC. The library is loaded when it is first needed, so that this module can be loaded on a
//! machine without it; the crate `pcsc` links it.
//!
//! `SCardTransmit` has no deadline and cannot be cancelled, so a separate thread makes the calls:
//! at the deadline the caller abandons it with any late answer.

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

/// The most threads that may hang in a reader that does not answer.
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

    fn call(&mut self, job: Job, deadline: Instant) -> Result<Reply, TransportError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.start_worker()?,
        };
        match worker.call(job, deadline) {
            Some(Ok(reply)) => {
                self.worker = Some(worker);
                Ok(reply)
            }
            Some(Err(error)) => {
                // After a reset by another program the connection can be used; after other errors
                // it is made again.
                if error == TransportError::CardReset {
                    self.worker = Some(worker);
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
        match self.call(Job::Transmit(Zeroizing::new(apdu.to_vec())), deadline)? {
            Reply::Answer(answer) => {
                checked(answer, "the reader").inspect_err(|_| self.worker = None)
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
        if self.worker.is_none() {
            self.reset(deadline)?;
        }
        self.call(Job::Begin, deadline).map(drop)
    }

    fn end(&mut self) {
        if let Some(worker) = &self.worker {
            worker.send(Job::End);
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
