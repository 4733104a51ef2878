// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many callers there are: each has a thread, and no user has all of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::card::lock;

/// The most callers at a time.
const CALLERS_MAX: usize = 256;
/// Of one user with rights that is not the agent's own, and of one without any.
const OTHERS_MAX: usize = 64;
const STRANGERS_MAX: usize = 4;

/// Whose a caller is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The agent's own user's.
    Own,
    /// Another user's that has rights.
    Other,
    /// A user's without rights.
    Stranger,
}

/// The callers there are, by user.
#[derive(Default)]
pub(super) struct Places(Mutex<BTreeMap<u32, usize>>);

/// One caller's, until this is dropped.
pub(super) struct Place<'a> {
    places: &'a Places,
    uid: u32,
}

impl Places {
    /// A place, if there is one for this user.
    pub(super) fn take(&self, uid: u32, kind: Kind) -> Option<Place<'_>> {
        let mut all = lock(&self.0);
        let most = match kind {
            Kind::Own => CALLERS_MAX,
            Kind::Other => OTHERS_MAX,
            Kind::Stranger => STRANGERS_MAX,
        };
        let total: usize = all.values().sum();
        let own = all.get(&uid).copied().unwrap_or_default();
        if total >= CALLERS_MAX || own >= most {
            return None;
        }
        all.insert(uid, own + 1);
        Some(Place { places: self, uid })
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        lock(&self.0).values().sum()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.places.0);
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
    fn no_other_user_has_all_places() {
        let places = Places::default();
        let all = |uid, kind| std::iter::from_fn(|| places.take(uid, kind)).collect::<Vec<_>>();
        let (strangers, others) = (all(1, Kind::Stranger), all(2, Kind::Other));
        assert_eq!((strangers.len(), others.len()), (STRANGERS_MAX, OTHERS_MAX));
        let own = all(3, Kind::Own);
        assert_eq!(own.len(), CALLERS_MAX - STRANGERS_MAX - OTHERS_MAX);
        assert_eq!(places.taken(), CALLERS_MAX);
        drop((strangers, own));
        assert_eq!(places.taken(), OTHERS_MAX);
        assert!(places.take(1, Kind::Stranger).is_some());
        drop(others);
        assert_eq!(places.taken(), 0);
    }
}
