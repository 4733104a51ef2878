// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Labels: which secret something came from, and the instruction that brought it, in two bytes.

use std::collections::HashMap;

use crate::core::Operation;

/// Nothing secret, or the number of an [`Origin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label(u16);

/// Set in the label of stacked flags: the rest is the number of their own labels.
const STACKED_FLAGS: u16 = 1 << 15;
/// Numbers of labels end here.
const LAST: u16 = STACKED_FLAGS - 1;
/// So many secrets are told apart: the other half of the labels is for the loads that bring them.
const MOST_SECRETS: usize = LAST as usize / 2;

impl Label {
    /// Public.
    pub const CLEAN: Label = Label(0);

    /// As [`super::shadow`] keeps it.
    #[inline]
    pub(super) fn number(self) -> u16 {
        self.0
    }

    #[inline]
    pub(super) fn from_number(number: u16) -> Label {
        Label(number)
    }

    /// Whether it is of a secret.
    #[inline]
    pub fn is_secret(self) -> bool {
        self.0 != 0
    }

    /// This label if it is a secret's, else the other.
    #[inline]
    #[must_use]
    pub fn or(self, other: Label) -> Label {
        if self.is_secret() { self } else { other }
    }
}

/// Who said that bytes are secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PoisonedBy {
    /// A store to the taint port, the address of which this is.
    Port(u32),
    /// Whoever runs the program, by a name.
    Name(String),
}

/// Bytes that were poisoned together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Secret {
    /// The first byte.
    pub address: u32,
    /// How many bytes.
    pub bytes: u32,
    /// Who poisoned them.
    pub by: PoisonedBy,
}

/// Where something secret came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The number of its [`Secret`]; `None` where there were too many to tell them apart.
    pub secret: Option<usize>,
    /// The load that brought it into a register; `None` for bytes that nothing has loaded since they were poisoned.
    pub brought_by: Option<Operation>,
}

/// Every label that was given.
#[derive(Debug)]
pub struct Labels {
    origins: Vec<Origin>,
    secrets: Vec<Secret>,
    secret_numbers: HashMap<Secret, usize>,
    numbers: HashMap<(Option<usize>, Option<u32>), Label>,
    stacked: Vec<[Label; 5]>,
    stacked_numbers: HashMap<[Label; 5], Label>,
    /// What [`Labels::bring`] answered last, by the instruction's address.
    recent: Box<[(u32, Label, Label); RECENT]>,
}

const RECENT: usize = 256;

impl Default for Labels {
    fn default() -> Self {
        // The first origin is of those that found no number left.
        let lost = Origin { secret: None, brought_by: None };
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
    /// The label of bytes that were poisoned and not loaded yet.
    pub fn poisoned(&mut self, secret: Secret) -> Label {
        let number = self.secret_numbers.get(&secret).copied();
        let number = number.or_else(|| {
            let next = (self.secrets.len() < MOST_SECRETS).then_some(self.secrets.len())?;
            self.secrets.push(secret.clone());
            self.secret_numbers.insert(secret, next);
            Some(next)
        });
        self.number(number, None)
    }

    /// The label of what an instruction loads from bytes that have a label.
    #[inline]
    pub fn bring(&mut self, label: Label, operation: &Operation) -> Label {
        let (address, before, after) = self.recent[(operation.address >> 1) as usize % RECENT];
        if address == operation.address && before == label {
            return after;
        }
        let secret = self.origin(label).secret;
        let after = self.number(secret, Some(operation));
        self.recent[(operation.address >> 1) as usize % RECENT] = (operation.address, label, after);
        after
    }

    /// What a label stands for.
    pub fn origin(&self, label: Label) -> &Origin {
        let plain = self.plain(label);
        // Labels are given out here alone, and the first origin always is.
        self.origins.get(usize::from(plain.0).wrapping_sub(1)).unwrap_or(&self.origins[0])
    }

    /// The secret by its number.
    pub fn secret(&self, number: usize) -> Option<&Secret> {
        self.secrets.get(number)
    }

    /// One label for N, Z, C, V and Q together, from which [`Labels::unstack`] gives each back.
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

    /// The labels of N, Z, C, V and Q from the byte that they were stacked in; it may have been overwritten.
    pub fn unstack(&self, label: Label) -> [Label; 5] {
        match self.stacked.get(usize::from(label.0 ^ STACKED_FLAGS)) {
            Some(flags) if label.0 & STACKED_FLAGS != 0 => *flags,
            _ => [label; 5],
        }
    }

    /// A label as a register has it: of stacked flags the first secret one.
    #[inline]
    pub fn plain(&self, label: Label) -> Label {
        if label.0 & STACKED_FLAGS == 0 {
            label
        } else {
            self.unstack(label).into_iter().fold(Label::CLEAN, Label::or)
        }
    }

    fn number(&mut self, secret: Option<usize>, brought_by: Option<&Operation>) -> Label {
        let key = (secret, brought_by.map(|operation| operation.address));
        if let Some(label) = self.numbers.get(&key) {
            return *label;
        }
        if self.origins.len() >= usize::from(LAST) {
            return Label(1);
        }
        self.origins.push(Origin { secret, brought_by: brought_by.cloned() });
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
    fn secrets_beyond_count_are_secret_and_nameless() {
        let mut labels = Labels::default();
        let many: Vec<Label> = (0..40_000).map(|at| labels.poisoned(secret(at))).collect();
        assert!(many.iter().all(|label| label.is_secret()));
        assert_eq!(labels.secrets.len(), MOST_SECRETS);
        let name = |at: usize| labels.origin(many[at]).secret.and_then(|one| labels.secret(one));
        assert_eq!(name(16_000), Some(&secret(16_000)));
        assert_eq!(name(39_999), None);
        assert_eq!(labels.poisoned(secret(16_000)), many[16_000], "told apart as before");
    }
}
