// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Labels: which secret something came from, and the instruction that loaded it, in two bytes.

use std::collections::HashMap;

use crate::core::Operation;

/// Public, or the number of an [`Origin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label(u16);

/// Set in the label of stacked flags; the other bits index their own labels.
const STACKED_FLAGS: u16 = 1 << 15;
/// The largest label number.
const LAST: u16 = STACKED_FLAGS - 1;
/// Secrets that are told apart; the other half of the labels is for loads.
const MAX_SECRETS: usize = LAST as usize / 2;

impl Label {
    /// Public.
    pub const CLEAN: Label = Label(0);

    /// Its number, as [`super::shadow`] stores it.
    #[inline]
    pub(super) fn number(self) -> u16 {
        self.0
    }

    #[inline]
    pub(super) fn from_number(number: u16) -> Label {
        Label(number)
    }

    /// Whether it is the label of a secret.
    #[inline]
    pub fn is_secret(self) -> bool {
        self.0 != 0
    }

    /// This label if it is a secret's, otherwise the other.
    #[inline]
    #[must_use]
    pub fn or(self, other: Label) -> Label {
        if self.is_secret() { self } else { other }
    }
}

/// What made bytes secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PoisonedBy {
    /// A store to the taint port by the instruction at this address.
    Port(u32),
    /// The caller, under this name.
    Name(String),
}

/// Bytes that were poisoned together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Secret {
    /// The first byte.
    pub address: u32,
    /// How many bytes.
    pub bytes: u32,
    /// What poisoned them.
    pub by: PoisonedBy,
}

/// The origin of secret data.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The number of its [`Secret`]; `None` if there were too many to tell them apart.
    pub secret: Option<usize>,
    /// The instruction that loaded it into a register; `None` for bytes not loaded since they were
    /// poisoned.
    pub loaded_by: Option<Operation>,
}

/// All labels in use.
#[derive(Debug)]
pub struct Labels {
    origins: Vec<Origin>,
    secrets: Vec<Secret>,
    secret_numbers: HashMap<Secret, usize>,
    numbers: HashMap<(Option<usize>, Option<u32>), Label>,
    stacked: Vec<[Label; 5]>,
    stacked_numbers: HashMap<[Label; 5], Label>,
    /// What [`Labels::load`] returned last, by the instruction's address.
    recent: Box<[(u32, Label, Label); RECENT]>,
}

const RECENT: usize = 256;

impl Default for Labels {
    fn default() -> Self {
        // The first origin stands for all secrets after the numbers ran out.
        let lost = Origin { secret: None, loaded_by: None };
        Labels {
            origins: vec![lost],
            secrets: Vec::new(),
            secret_numbers: HashMap::new(),
            numbers: HashMap::new(),
            stacked: Vec::new(),
            stacked_numbers: HashMap::new(),
            recent: Box::new([(1, Label::CLEAN, Label::CLEAN); RECENT]),
        }
    }
}

impl Labels {
    /// The label of newly poisoned bytes.
    pub fn poisoned(&mut self, secret: Secret) -> Label {
        let number = self.secret_numbers.get(&secret).copied();
        let number = number.or_else(|| {
            let next = (self.secrets.len() < MAX_SECRETS).then_some(self.secrets.len())?;
            self.secrets.push(secret.clone());
            self.secret_numbers.insert(secret, next);
            Some(next)
        });
        self.number(number, None)
    }

    /// The label of data that an instruction loads from labelled bytes.
    #[inline]
    pub fn load(&mut self, label: Label, operation: &Operation) -> Label {
        let (address, before, after) = self.recent[(operation.address >> 1) as usize % RECENT];
        if address == operation.address && before == label {
            return after;
        }
        let secret = self.origin(label).secret;
        let after = self.number(secret, Some(operation));
        self.recent[(operation.address >> 1) as usize % RECENT] = (operation.address, label, after);
        after
    }

    /// The origin of a label.
    pub fn origin(&self, label: Label) -> &Origin {
        let plain = self.plain(label);
        // Only this type creates labels, and the first origin always exists.
        self.origins.get(usize::from(plain.0).wrapping_sub(1)).unwrap_or(&self.origins[0])
    }

    /// A secret by its number.
    pub fn secret(&self, number: usize) -> Option<&Secret> {
        self.secrets.get(number)
    }

    /// One label for N, Z, C, V and Q together, which [`Labels::unstack`] splits again.
    pub fn stack(&mut self, flags: [Label; 5]) -> Label {
        let any = flags.into_iter().fold(Label::CLEAN, Label::or);
        if !any.is_secret() {
            return any;
        }
        if let Some(label) = self.stacked_numbers.get(&flags) {
            return *label;
        }
        if self.stacked.len() >= usize::from(LAST) {
            return any;
        }
        let label = Label(STACKED_FLAGS | self.stacked.len() as u16);
        self.stacked.push(flags);
        self.stacked_numbers.insert(flags, label);
        label
    }

    /// The labels of N, Z, C, V and Q from the label of their byte, which may have been
    /// overwritten.
    pub fn unstack(&self, label: Label) -> [Label; 5] {
        match self.stacked.get(usize::from(label.0 ^ STACKED_FLAGS)) {
            Some(flags) if label.0 & STACKED_FLAGS != 0 => *flags,
            _ => [label; 5],
        }
    }

    /// A label for a register: of stacked flags the first secret one.
    #[inline]
    pub fn plain(&self, label: Label) -> Label {
        if label.0 & STACKED_FLAGS == 0 {
            label
        } else {
            self.unstack(label).into_iter().fold(Label::CLEAN, Label::or)
        }
    }

    fn number(&mut self, secret: Option<usize>, loaded_by: Option<&Operation>) -> Label {
        let key = (secret, loaded_by.map(|operation| operation.address));
        if let Some(label) = self.numbers.get(&key) {
            return *label;
        }
        if self.origins.len() >= usize::from(LAST) {
            return Label(1);
        }
        self.origins.push(Origin { secret, loaded_by: loaded_by.cloned() });
        let label = Label(self.origins.len() as u16);
        self.numbers.insert(key, label);
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(address: u32) -> Secret {
        Secret { address, bytes: 4, by: PoisonedBy::Port(0) }
    }

    #[test]
    fn secrets_beyond_max_secrets_are_tracked_without_name() {
        let mut labels = Labels::default();
        let many: Vec<Label> = (0..40_000).map(|at| labels.poisoned(secret(at))).collect();
        assert!(many.iter().all(|label| label.is_secret()));
        assert_eq!(labels.secrets.len(), MAX_SECRETS);
        let name = |at: usize| labels.origin(many[at]).secret.and_then(|one| labels.secret(one));
        assert_eq!(name(16_000), Some(&secret(16_000)));
        assert_eq!(name(39_999), None);
        assert_eq!(labels.poisoned(secret(16_000)), many[16_000], "told apart as before");
    }
}
