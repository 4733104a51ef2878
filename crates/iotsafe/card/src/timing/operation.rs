// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a card had to do for a command.

use crate::apdu::{Command, StatusWord};
use crate::card::ins;

/// What a command makes a card do, as far as its time depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening or closing a logical channel.
    ManageChannel,
    /// Selecting the applet.
    Select,
    /// Comparing a PIN.
    VerifyPin,
    /// Describing the application or objects.
    GetData,
    /// Reading a file.
    ReadFile,
    /// Drawing random numbers.
    GetRandom,
    /// Generating a key pair.
    GenerateKeyPair,
    /// Reading a public key.
    ReadPublicKey,
    /// Storing a public key: the last update.
    PutPublicKey,
    /// Making a signature: the last update.
    ComputeSignature,
    /// Verifying a signature: the last update.
    VerifySignature,
    /// Diffie-Hellman.
    ComputeDh,
    /// PRF or HKDF.
    Derive,
    /// Opening, closing or feeding a session.
    Session,
    /// Anything else: parts of a chain or of an answer, and what is refused.
    Other,
}

impl Operation {
    /// Every one.
    pub const ALL: [Operation; 15] = [
        Operation::ManageChannel,
        Operation::Select,
        Operation::VerifyPin,
        Operation::GetData,
        Operation::ReadFile,
        Operation::GetRandom,
        Operation::GenerateKeyPair,
        Operation::ReadPublicKey,
        Operation::PutPublicKey,
        Operation::ComputeSignature,
        Operation::VerifySignature,
        Operation::ComputeDh,
        Operation::Derive,
        Operation::Session,
        Operation::Other,
    ];

    /// Its key in a profile.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::ManageChannel => "manage_channel",
            Operation::Select => "select",
            Operation::VerifyPin => "verify_pin",
            Operation::GetData => "get_data",
            Operation::ReadFile => "read_file",
            Operation::GetRandom => "get_random",
            Operation::GenerateKeyPair => "generate_key_pair",
            Operation::ReadPublicKey => "read_public_key",
            Operation::PutPublicKey => "put_public_key",
            Operation::ComputeSignature => "compute_signature",
            Operation::VerifySignature => "verify_signature",
            Operation::ComputeDh => "compute_dh",
            Operation::Derive => "derive",
            Operation::Session => "session",
            Operation::Other => "other",
        }
    }

    /// The operation of a command that was answered with `sw`.
    #[must_use]
    pub fn of(command: &[u8], sw: StatusWord) -> Operation {
        let Ok(command) = Command::parse(command) else { return Operation::Other };
        if command.cla & 0x10 != 0 {
            return Operation::Other; // a chain's work is done with its last command
        }
        let last = command.p1 & 0x80 != 0;
        let operation = match command.ins {
            ins::MANAGE_CHANNEL => Operation::ManageChannel,
            ins::SELECT => Operation::Select,
            ins::VERIFY => Operation::VerifyPin,
            ins::GET_DATA => Operation::GetData,
            ins::READ_FILE => Operation::ReadFile,
            ins::GET_RANDOM => Operation::GetRandom,
            ins::GENERATE_KEY_PAIR => Operation::GenerateKeyPair,
            ins::READ_PUBLIC_KEY => Operation::ReadPublicKey,
            ins::PUT_PUBLIC_KEY_UPDATE if last => Operation::PutPublicKey,
            ins::COMPUTE_SIGNATURE_UPDATE if last => Operation::ComputeSignature,
            ins::VERIFY_SIGNATURE_UPDATE if last => Operation::VerifySignature,
            ins::COMPUTE_DH => Operation::ComputeDh,
            ins::COMPUTE_PRF | ins::HKDF_EXTRACT => Operation::Derive,
            ins::PUT_PUBLIC_KEY_INIT
            | ins::PUT_PUBLIC_KEY_UPDATE
            | ins::COMPUTE_SIGNATURE_INIT
            | ins::COMPUTE_SIGNATURE_UPDATE
            | ins::VERIFY_SIGNATURE_INIT
            | ins::VERIFY_SIGNATURE_UPDATE => Operation::Session,
            _ => Operation::Other,
        };
        // A wrong PIN and a wrong signature take the comparison; other refusals take none.
        let worked = match operation {
            Operation::VerifyPin => sw.0 & 0xfff0 == 0x63c0 || !sw.is_error(),
            Operation::VerifySignature => sw == StatusWord::BAD_SIGNATURE || !sw.is_error(),
            _ => !sw.is_error(),
        };
        if worked { operation } else { Operation::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_by_command_and_status() {
        let of = |command: &[u8], sw| Operation::of(command, StatusWord(sw));
        assert_eq!(of(&[0x81, 0x2b, 0x80, 1], 0x9000), Operation::ComputeSignature);
        assert_eq!(of(&[0x81, 0x2b, 0x80, 1], 0x6143), Operation::ComputeSignature);
        assert_eq!(of(&[0x81, 0x2b, 0x00, 1], 0x9000), Operation::Session);
        assert_eq!(of(&[0x91, 0x2b, 0x80, 1], 0x9000), Operation::Other);
        assert_eq!(of(&[0x81, 0x2b, 0x80, 1], 0x6985), Operation::Other);
        assert_eq!(of(&[0x81, 0x2d, 0x80, 1], 0x6d01), Operation::VerifySignature);
        assert_eq!(of(&[0, 0x20, 0, 1], 0x63c2), Operation::VerifyPin);
        assert_eq!(of(&[0, 0x20, 0, 1], 0x6983), Operation::Other);
        assert_eq!(of(&[0x81], 0x6700), Operation::Other);
    }
}
