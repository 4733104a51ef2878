// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's end of the agent's socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warifu_iotsafe_client::TokenError;
use warifu_iotsafe_client::transport::{Exchange, TransportError, Watch, permission_denied};
use warifu_os::DeadlineStream;
use zeroize::Zeroizing;

use crate::message::{
    Answer, Call, FRAME_MAX_BYTES, REQUEST_MAX_BYTES, Reply, Request, decode, encode,
};

/// The most time for an answer on its way.
const REPLY_MARGIN_MAX: Duration = Duration::from_millis(500);

/// A connection to the agent, made when it is first used, and again after an error.
pub struct AgentClient {
    path: PathBuf,
    card: String,
    stream: Option<DeadlineStream>,
    number: u32,
    watch: Option<Watch>,
}

impl AgentClient {
    /// The agent at `path`, and its card of this name, or its first card.
    #[must_use]
    pub fn new(path: &Path, card: Option<&str>) -> AgentClient {
        let card = card.unwrap_or_default().to_owned();
        AgentClient { path: path.to_owned(), card, stream: None, number: 0, watch: None }
    }

    /// Adds a [`Watch`], which sees every request.
    #[must_use]
    pub fn watched(mut self, watch: Option<Watch>) -> AgentClient {
        self.watch = watch;
        self
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The agent's errors; [`TransportError::Gone`], which says how to start an agent;
    /// [`TransportError::Timeout`].
    pub fn call(&mut self, call: Call, deadline: Instant) -> Result<Answer, TokenError> {
        let name = call.name();
        self.number = self.number.wrapping_add(1);
        let start = Instant::now();
        let left = deadline.saturating_duration_since(start);
        // What the agent says at the end of its time is to arrive within ours.
        let timeout = left - (left / 10).min(REPLY_MARGIN_MAX);
        let request = Request { number: self.number, card: self.card.clone(), timeout, call };
        let frame = encode(&request).filter(|frame| frame.len() <= REQUEST_MAX_BYTES + 4);
        let Some(frame) = frame else {
            let text =
                format!("the request is too long for the agent: {REQUEST_MAX_BYTES} B at most");
            return Err(TokenError::Denied(text));
        };
        let received = self.round_trip(&frame, deadline).inspect_err(|_| self.stream = None);
        if let Some(watch) = &self.watch {
            watch(&Exchange {
                name: Some(name),
                header: None,
                command_bytes: frame.len(),
                answer_bytes: received.as_ref().map_or(0, |reply| reply.1),
                sw: None,
                start,
                duration: start.elapsed(),
            });
        }
        let (reply, _) = received?;
        if reply.number != self.number {
            self.stream = None;
            return Err(self.unexpected_answer());
        }
        reply.answer
    }

    /// Closes the connection, which frees the volatile keys that the agent has lent to it.
    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    /// The error for an answer that is none to the request.
    pub(crate) fn unexpected_answer(&self) -> TokenError {
        TransportError::Garbled(format!(
            "unexpected answer from the agent at {}: restart it after an update",
            self.path.display()
        ))
        .into()
    }

    fn round_trip(
        &mut self,
        frame: &[u8],
        deadline: Instant,
    ) -> Result<(Reply, usize), TokenError> {
        let stream = self.stream(deadline)?;
        let received = send_and_receive(stream, frame, deadline);
        let body = received.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => TransportError::Timeout(self.name()),
            io::ErrorKind::InvalidData => TransportError::Garbled(error.to_string()),
            _ => TransportError::Gone(format!(
                "the agent at {} closed the connection",
                self.path.display()
            )),
        })?;
        let reply = decode(&body).ok_or_else(|| self.unexpected_answer())?;
        Ok((reply, body.len()))
    }

    fn stream(&mut self, deadline: Instant) -> Result<&DeadlineStream, TransportError> {
        // The agent may have been restarted. Nothing has been sent, so nothing is sent twice.
        let kept = self.stream.take().filter(|stream| !stream.has_input_or_end());
        let stream = match kept {
            Some(stream) => stream,
            None => self.connect(deadline)?,
        };
        Ok(self.stream.insert(stream))
    }

    fn connect(&self, deadline: Instant) -> Result<DeadlineStream, TransportError> {
        DeadlineStream::connect(&self.path, deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => TransportError::Timeout(self.name()),
            io::ErrorKind::PermissionDenied => {
                TransportError::Gone(permission_denied("the agent", &self.path, |user| {
                    format!("have its owner add a [[caller]] with uid = {user} to its agent.toml")
                }))
            }
            // The socket of a killed agent remains.
            io::ErrorKind::ConnectionRefused => TransportError::Gone(format!(
                "the agent at {} has ended; start it with: warifu agent start",
                self.path.display()
            )),
            _ => TransportError::Gone(format!(
                "no agent at {}: {error}; start one with: warifu agent start",
                self.path.display()
            )),
        })
    }

    fn name(&self) -> String {
        format!("the agent at {}", self.path.display())
    }
}

fn send_and_receive(
    stream: &DeadlineStream,
    frame: &[u8],
    deadline: Instant,
) -> io::Result<Zeroizing<Vec<u8>>> {
    stream.write_all(frame, deadline)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length, deadline)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX_BYTES {
        let text = format!("invalid answer length from the agent: {length} B");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut body = Zeroizing::new(vec![0; length]);
    stream.read_exact(&mut body, deadline)?;
    Ok(body)
}
