// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits on the number of connections, each of which has a thread: no user can take all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::card::lock;

/// The most connections of the agent's own user at a time.
const OWN_MAX: usize = 256;
/// The most of one other user with rights, and of all of them.
const WITH_RIGHTS_MAX: usize = 64;
const ALL_WITH_RIGHTS_MAX: usize = 192;
/// Of all of them, how many stay free for each user of the configuration, while there are enough.
const RESERVE_MAX: usize = 4;
/// The most of one user without rights, and of all of them, however many users a stranger has.
const WITHOUT_RIGHTS_MAX: usize = 4;
const ALL_WITHOUT_RIGHTS_MAX: usize = 16;

/// The user of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UserKind {
    /// The user who runs the agent.
    Own,
    /// Another user with rights.
    WithRights,
    /// A user without rights.
    WithoutRights,
}

impl UserKind {
    /// The most connections of one user, and of all of this kind.
    fn limits(self) -> (usize, usize) {
        match self {
            UserKind::Own => (OWN_MAX, OWN_MAX),
            UserKind::WithRights => (WITH_RIGHTS_MAX, ALL_WITH_RIGHTS_MAX),
            UserKind::WithoutRights => (WITHOUT_RIGHTS_MAX, ALL_WITHOUT_RIGHTS_MAX),
        }
    }
}

/// The connections of each user.
pub(super) struct CallerSlots {
    taken: Mutex<BTreeMap<(UserKind, u32), usize>>,
    /// The other users with rights, each of whom has [`CallerSlots::reserve`].
    others: BTreeSet<u32>,
}

/// The slot of one caller, until this is dropped.
pub(super) struct CallerSlot {
    slots: Arc<CallerSlots>,
    user: (UserKind, u32),
}

impl CallerSlot {
    /// Its user.
    pub(super) fn uid(&self) -> u32 {
        self.user.1
    }
}

impl CallerSlots {
    /// None taken yet; `others` are the users with rights beside the agent's own.
    pub(super) fn new(others: impl IntoIterator<Item = u32>) -> Arc<CallerSlots> {
        let others = others.into_iter().collect();
        Arc::new(CallerSlots { taken: Mutex::default(), others })
    }

    /// A slot, if there is one left for this user.
    pub(super) fn take(self: &Arc<Self>, uid: u32, kind: UserKind) -> Option<CallerSlot> {
        let mut taken = lock(&self.taken);
        let (most, most_of_kind) = kind.limits();
        let all: usize = taken.range((kind, 0)..=(kind, u32::MAX)).map(|(_, count)| count).sum();
        let of = |uid| taken.get(&(kind, uid)).copied().unwrap_or_default();
        let own = of(uid);
        let kept: usize = match kind {
            UserKind::WithRights => {
                let others = self.others.iter().filter(|&&other| other != uid);
                others.map(|&other| self.reserve().saturating_sub(of(other))).sum()
            }
            UserKind::Own | UserKind::WithoutRights => 0,
        };
        if all + kept >= most_of_kind || own >= most {
            return None;
        }
        taken.insert((kind, uid), own + 1);
        Some(CallerSlot { slots: Arc::clone(self), user: (kind, uid) })
    }

    /// How many slots stay free for each of the others, whatever the rest of them have taken.
    fn reserve(&self) -> usize {
        (ALL_WITH_RIGHTS_MAX / self.others.len().max(1)).min(RESERVE_MAX)
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        lock(&self.taken).values().sum()
    }
}

impl Drop for CallerSlot {
    fn drop(&mut self) {
        let mut taken = lock(&self.slots.taken);
        if let Some(count) = taken.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(slots: &Arc<CallerSlots>, uid: u32, kind: UserKind) -> Vec<CallerSlot> {
        std::iter::from_fn(|| slots.take(uid, kind)).collect()
    }

    #[test]
    fn slots_per_user_are_limited() {
        let slots = CallerSlots::new([2]);
        let without_rights = all(&slots, 1, UserKind::WithoutRights);
        let with_rights = all(&slots, 2, UserKind::WithRights);
        let own = all(&slots, 3, UserKind::Own);
        assert_eq!(without_rights.len(), WITHOUT_RIGHTS_MAX);
        assert_eq!((with_rights.len(), own.len()), (WITH_RIGHTS_MAX, OWN_MAX));
        drop((without_rights, own));
        assert_eq!(slots.taken(), WITH_RIGHTS_MAX);
        assert!(slots.take(1, UserKind::WithoutRights).is_some());
        drop(with_rights);
        assert_eq!(slots.taken(), 0);
    }

    #[test]
    fn users_together_leave_places_to_the_others() {
        let slots = CallerSlots::new(100..164);
        let of_many = |kind| (100..164).flat_map(|uid| all(&slots, uid, kind)).collect::<Vec<_>>();
        let strangers = of_many(UserKind::WithoutRights);
        assert_eq!(strangers.len(), ALL_WITHOUT_RIGHTS_MAX);
        let others = of_many(UserKind::WithRights);
        assert_eq!(others.len(), ALL_WITH_RIGHTS_MAX);
        assert_eq!(all(&slots, 3, UserKind::Own).len(), OWN_MAX);
    }

    #[test]
    fn silent_users_with_rights_leave_places_to_each_of_the_others() {
        let slots = CallerSlots::new(1..=20);
        let silent: Vec<_> =
            (1..=3).flat_map(|uid| all(&slots, uid, UserKind::WithRights)).collect();
        assert_eq!(silent.len(), ALL_WITH_RIGHTS_MAX - 17 * RESERVE_MAX);
        let later: Vec<usize> =
            (4..=20).map(|uid| all(&slots, uid, UserKind::WithRights).len()).collect();
        assert_eq!(later, [RESERVE_MAX; 17], "each in its turn");
        let held: Vec<_> =
            (4..=20).flat_map(|uid| all(&slots, uid, UserKind::WithRights)).collect();
        assert_eq!(silent.len() + held.len(), ALL_WITH_RIGHTS_MAX);
        // More users than places: nothing is kept, and nobody is refused for it.
        let slots = CallerSlots::new(0..500);
        assert_eq!(all(&slots, 7, UserKind::WithRights).len(), WITH_RIGHTS_MAX);
    }
}
