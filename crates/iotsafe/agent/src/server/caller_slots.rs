// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits on the number of connections, each of which has a thread: no user can take all of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::card::lock;

/// The most connections at a time.
const CALLERS_MAX: usize = 256;
/// The most of one user with rights, other than the agent's own user.
const WITH_RIGHTS_MAX: usize = 64;
/// The most of one user without rights.
const WITHOUT_RIGHTS_MAX: usize = 4;

/// The user of a caller.
#[derive(Clone, Copy)]
pub(super) enum UserKind {
    /// The user who runs the agent.
    Own,
    /// Another user with rights.
    WithRights,
    /// A user without rights.
    WithoutRights,
}

/// The connections of each user.
#[derive(Default)]
pub(super) struct CallerSlots(Mutex<BTreeMap<u32, usize>>);

/// The slot of one caller, until this is dropped.
pub(super) struct CallerSlot<'a> {
    slots: &'a CallerSlots,
    uid: u32,
}

impl CallerSlots {
    /// A slot, if there is one left for this user.
    pub(super) fn take(&self, uid: u32, kind: UserKind) -> Option<CallerSlot<'_>> {
        let mut all = lock(&self.0);
        let most = match kind {
            UserKind::Own => CALLERS_MAX,
            UserKind::WithRights => WITH_RIGHTS_MAX,
            UserKind::WithoutRights => WITHOUT_RIGHTS_MAX,
        };
        let total: usize = all.values().sum();
        let own = all.get(&uid).copied().unwrap_or_default();
        if total >= CALLERS_MAX || own >= most {
            return None;
        }
        all.insert(uid, own + 1);
        Some(CallerSlot { slots: self, uid })
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        lock(&self.0).values().sum()
    }
}

impl Drop for CallerSlot<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.slots.0);
        if let Some(count) = all.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_per_user_are_limited() {
        let slots = CallerSlots::default();
        let all = |uid, kind| std::iter::from_fn(|| slots.take(uid, kind)).collect::<Vec<_>>();
        let (without_rights, with_rights) =
            (all(1, UserKind::WithoutRights), all(2, UserKind::WithRights));
        assert_eq!(
            (without_rights.len(), with_rights.len()),
            (WITHOUT_RIGHTS_MAX, WITH_RIGHTS_MAX)
        );
        let own = all(3, UserKind::Own);
        assert_eq!(own.len(), CALLERS_MAX - WITHOUT_RIGHTS_MAX - WITH_RIGHTS_MAX);
        assert_eq!(slots.taken(), CALLERS_MAX);
        drop((without_rights, own));
        assert_eq!(slots.taken(), WITH_RIGHTS_MAX);
        assert!(slots.take(1, UserKind::WithoutRights).is_some());
        drop(with_rights);
        assert_eq!(slots.taken(), 0);
    }
}
