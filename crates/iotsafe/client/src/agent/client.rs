// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The caller's end of the agent's socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warifu_card::crypto::SecretBytes;
use zeroize::Zeroizing;

use super::message::{
    Answer, Call, FRAME_MAX_BYTES, Input, RANDOM_MAX_BYTES, Reply, Request, decode, encode,
};
use crate::error::TokenError;
use crate::object::{File, Inventory, TokenInfo};
use crate::token::{GeneratedPair, PinState, SignInput, Token};
use crate::transport::{Exchange, TransportError, Watch, Wire};

/// A connection to the agent that is made when it is first used, and again after an error.
pub struct AgentClient {
    path: PathBuf,
    card: String,
    wire: Option<Wire>,
    number: u32,
    watch: Option<Watch>,
}

impl AgentClient {
    /// The agent at `path`, and its card of a name; its first for none.
    #[must_use]
    pub fn new(path: &Path, card: Option<&str>) -> AgentClient {
        let card = card.unwrap_or_default().to_owned();
        AgentClient { path: path.to_owned(), card, wire: None, number: 0, watch: None }
    }

    /// Has a [`Watch`] told of every request.
    #[must_use]
    pub fn watched(mut self, watch: Option<Watch>) -> AgentClient {
        self.watch = watch;
        self
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The agent's; [`TransportError::Gone`] with how to start one; [`TransportError::Timeout`].
    pub fn ask(&mut self, call: Call, deadline: Instant) -> Result<Answer, TokenError> {
        let name = call.name();
        self.number = self.number.wrapping_add(1);
        let start = Instant::now();
        let within = deadline.saturating_duration_since(start);
        let request = Request { number: self.number, card: self.card.clone(), within, call };
        let Some(frame) = encode(&request) else {
            let text = "the text is too long for the agent: hash it, then have the hash signed";
            return Err(TokenError::Denied(text.to_owned()));
        };
        let received = self.round_trip(&frame, deadline).inspect_err(|_| self.wire = None);
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
            self.wire = None;
            return Err(self.strange());
        }
        reply.answer
    }

    /// Ends the connection, and with it what the agent has lent.
    pub fn hang_up(&mut self) {
        self.wire = None;
    }

    /// The agent answered with something else than what was asked for.
    fn strange(&self) -> TokenError {
        TransportError::Garbled(format!(
            "{} does not speak as this agent's client does: restart the agent after an update",
            self.path.display()
        ))
        .into()
    }

    fn round_trip(
        &mut self,
        frame: &[u8],
        deadline: Instant,
    ) -> Result<(Reply, usize), TokenError> {
        let wire = self.wire(deadline)?;
        let received = send_and_receive(wire, frame, deadline);
        let body = received.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => TransportError::Timeout(self.name()),
            io::ErrorKind::InvalidData => TransportError::Garbled(error.to_string()),
            _ => TransportError::Gone(format!(
                "the agent at {} closed the connection",
                self.path.display()
            )),
        })?;
        let reply = decode(&body).ok_or_else(|| self.strange())?;
        Ok((reply, body.len()))
    }

    fn wire(&mut self, deadline: Instant) -> Result<&Wire, TransportError> {
        // An agent that was restarted since: nothing has been sent, so nothing is sent twice.
        let kept = self.wire.take().filter(|wire| !wire.has_input_or_end());
        let wire = match kept {
            Some(wire) => wire,
            None => self.connect(deadline)?,
        };
        Ok(self.wire.insert(wire))
    }

    fn connect(&self, deadline: Instant) -> Result<Wire, TransportError> {
        Wire::connect(&self.path, deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => TransportError::Timeout(self.name()),
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
    wire: &Wire,
    frame: &[u8],
    deadline: Instant,
) -> io::Result<Zeroizing<Vec<u8>>> {
    wire.write_all(frame, deadline)?;
    let mut length = [0; 4];
    wire.read_exact(&mut length, deadline)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > FRAME_MAX_BYTES {
        let text = format!("the agent announced an answer of {length} B: not its protocol");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut body = Zeroizing::new(vec![0; length]);
    wire.read_exact(&mut body, deadline)?;
    Ok(body)
}

/// A card that the agent holds.
pub struct AgentToken(AgentClient);

impl AgentToken {
    /// A token behind a client; nothing is sent before it is asked for something.
    #[must_use]
    pub fn new(client: AgentClient) -> AgentToken {
        AgentToken(client)
    }

    fn bytes(&mut self, call: Call, deadline: Instant) -> Result<SecretBytes, TokenError> {
        match self.0.ask(call, deadline)? {
            Answer::Bytes(mut bytes) => Ok(SecretBytes::new(std::mem::take(&mut *bytes))),
            _ => Err(self.0.strange()),
        }
    }

    fn array<const N: usize>(
        &mut self,
        call: Call,
        deadline: Instant,
    ) -> Result<[u8; N], TokenError> {
        let bytes = self.bytes(call, deadline)?;
        bytes.expose().try_into().map_err(|_| self.0.strange())
    }
}

impl Token for AgentToken {
    fn info(&mut self, deadline: Instant) -> Result<TokenInfo, TokenError> {
        match self.0.ask(Call::Info, deadline)? {
            Answer::Info(info) => Ok(info),
            _ => Err(self.0.strange()),
        }
    }

    fn pin_state(&mut self, deadline: Instant) -> Result<PinState, TokenError> {
        match self.0.ask(Call::PinState, deadline)? {
            Answer::PinState(state) => Ok(state),
            _ => Err(self.0.strange()),
        }
    }

    fn verify_pin(&mut self, pin: &[u8], deadline: Instant) -> Result<(), TokenError> {
        let call = Call::VerifyPin(pin.to_vec().into());
        match self.0.ask(call, deadline)? {
            Answer::Done => Ok(()),
            _ => Err(self.0.strange()),
        }
    }

    fn objects(&mut self, deadline: Instant) -> Result<Inventory, TokenError> {
        match self.0.ask(Call::Objects, deadline)? {
            Answer::Objects(inventory) => Ok(inventory),
            _ => Err(self.0.strange()),
        }
    }

    fn read_file(&mut self, file: &File, deadline: Instant) -> Result<Vec<u8>, TokenError> {
        let content = self.bytes(Call::ReadFile(file.clone()), deadline)?;
        Ok(content.expose().to_vec())
    }

    fn read_public_key(&mut self, id: &[u8], deadline: Instant) -> Result<[u8; 65], TokenError> {
        self.array(Call::ReadPublicKey(id.to_vec()), deadline)
    }

    fn sign(
        &mut self,
        key: &[u8],
        input: SignInput<'_>,
        deadline: Instant,
    ) -> Result<[u8; 64], TokenError> {
        self.array(Call::Sign { key: key.to_vec(), input: Input::from(input) }, deadline)
    }

    fn verify(
        &mut self,
        public_key: &[u8],
        input: SignInput<'_>,
        signature: &[u8; 64],
        deadline: Instant,
    ) -> Result<bool, TokenError> {
        let (key, signature) = (public_key.to_vec(), signature.to_vec());
        match self.0.ask(Call::Verify { key, input: Input::from(input), signature }, deadline)? {
            Answer::Matches(matches) => Ok(matches),
            _ => Err(self.0.strange()),
        }
    }

    fn derive(
        &mut self,
        key: &[u8],
        peer: &[u8; 65],
        deadline: Instant,
    ) -> Result<SecretBytes, TokenError> {
        self.bytes(Call::Derive { key: key.to_vec(), peer: peer.to_vec() }, deadline)
    }

    fn generate(&mut self, key: &[u8], deadline: Instant) -> Result<GeneratedPair, TokenError> {
        match self.0.ask(Call::Generate(key.to_vec()), deadline)? {
            Answer::Pair { public_id, point } => {
                let point = point.try_into().map_err(|_| self.0.strange())?;
                Ok(GeneratedPair { public_id, point })
            }
            _ => Err(self.0.strange()),
        }
    }

    fn random(&mut self, room: &mut [u8], deadline: Instant) -> Result<(), TokenError> {
        for part in room.chunks_mut(RANDOM_MAX_BYTES) {
            let bytes = self.bytes(Call::Random(part.len() as u32), deadline)?;
            if bytes.expose().len() != part.len() {
                return Err(self.0.strange());
            }
            part.copy_from_slice(bytes.expose());
        }
        Ok(())
    }

    /// Starts anew as far as this caller goes: the card's session is the agent's.
    fn reset(&mut self, _deadline: Instant) -> Result<(), TokenError> {
        self.0.hang_up();
        Ok(())
    }

    fn release(&mut self, _deadline: Instant) {
        self.0.hang_up();
    }
}
