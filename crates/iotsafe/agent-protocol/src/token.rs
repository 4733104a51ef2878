// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A card of the agent's as a token.

use std::time::Instant;

use warifu_card::crypto::SecretBytes;
use warifu_iotsafe_client::{
    File, GeneratedPair, Inventory, PinState, SignInput, Token, TokenError, TokenInfo,
};

use crate::client::AgentClient;
use crate::message::{Answer, Call, Input, RANDOM_MAX_BYTES};

/// A card that the agent holds.
pub struct AgentToken(AgentClient);

impl AgentToken {
    /// The token at the end of a client; nothing is sent before the first operation.
    #[must_use]
    pub fn new(client: AgentClient) -> AgentToken {
        AgentToken(client)
    }

    fn bytes(&mut self, call: Call, deadline: Instant) -> Result<SecretBytes, TokenError> {
        match self.0.call(call, deadline)? {
            Answer::Bytes(mut bytes) => Ok(SecretBytes::new(std::mem::take(&mut *bytes))),
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn array<const N: usize>(
        &mut self,
        call: Call,
        deadline: Instant,
    ) -> Result<[u8; N], TokenError> {
        let bytes = self.bytes(call, deadline)?;
        bytes.expose().try_into().map_err(|_| self.0.unexpected_answer())
    }
}

impl Token for AgentToken {
    fn info(&mut self, deadline: Instant) -> Result<TokenInfo, TokenError> {
        match self.0.call(Call::Info, deadline)? {
            Answer::Info(info) => Ok(info),
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn pin_state(&mut self, deadline: Instant) -> Result<PinState, TokenError> {
        match self.0.call(Call::PinState, deadline)? {
            Answer::PinState(state) => Ok(state),
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn verify_pin(&mut self, pin: &[u8], deadline: Instant) -> Result<(), TokenError> {
        let call = Call::VerifyPin(pin.to_vec().into());
        match self.0.call(call, deadline)? {
            Answer::Done => Ok(()),
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn objects(&mut self, deadline: Instant) -> Result<Inventory, TokenError> {
        match self.0.call(Call::Objects, deadline)? {
            Answer::Objects(inventory) => Ok(inventory),
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn read_file(&mut self, file: &File, deadline: Instant) -> Result<Vec<u8>, TokenError> {
        let content = self.bytes(Call::ReadFile(file.id.clone()), deadline)?;
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
        match self.0.call(Call::Verify { key, input: Input::from(input), signature }, deadline)? {
            Answer::Matches(matches) => Ok(matches),
            _ => Err(self.0.unexpected_answer()),
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
        match self.0.call(Call::Generate(key.to_vec()), deadline)? {
            Answer::Pair { public_id, point } => {
                let point = point.try_into().map_err(|_| self.0.unexpected_answer())?;
                Ok(GeneratedPair { public_id, point })
            }
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn give_back(&mut self, key: &[u8], deadline: Instant) -> Result<(), TokenError> {
        match self.0.call(Call::GiveBack(key.to_vec()), deadline)? {
            Answer::Done => Ok(()),
            _ => Err(self.0.unexpected_answer()),
        }
    }

    fn random(&mut self, room: &mut [u8], deadline: Instant) -> Result<(), TokenError> {
        for part in room.chunks_mut(RANDOM_MAX_BYTES) {
            let bytes = self.bytes(Call::Random(part.len() as u32), deadline)?;
            if bytes.expose().len() != part.len() {
                return Err(self.0.unexpected_answer());
            }
            part.copy_from_slice(bytes.expose());
        }
        Ok(())
    }

    /// Closes the connection only: the card's session belongs to the agent.
    fn reset(&mut self, _deadline: Instant) -> Result<(), TokenError> {
        self.0.disconnect();
        Ok(())
    }

    fn release(&mut self, _deadline: Instant) {
        self.0.disconnect();
    }
}
