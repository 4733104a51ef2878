// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key store in motion: one call at a time, a throttle, and sleep.

use crate::case_model::CaseModel;
use crate::random::Stream;
use crate::resource::Resource;

/// The key store in motion.
#[derive(Debug)]
pub(crate) struct KeyStore {
    pub resource: Resource,
    /// When the last signatures began, the oldest first, for its throttle.
    began: Vec<u64>,
    /// When the last call ended.
    last_used: Option<u64>,
}

impl KeyStore {
    pub(crate) fn new() -> KeyStore {
        KeyStore { resource: Resource::new(), began: Vec::new(), last_used: None }
    }

    pub(crate) fn reset(&mut self) {
        self.resource.reset(1);
        self.began.clear();
        self.last_used = None;
    }

    /// How long a call takes that begins then, ns: its throttle, waking up, itself.
    pub(crate) fn call(
        &mut self,
        model: &CaseModel,
        stream: &mut Stream,
        begins: u64,
        (call, signs): (u32, bool),
    ) -> u64 {
        let mut ns = 0;
        if let Some((after, wake)) = &model.sleep
            && self.last_used.is_none_or(|last| begins.saturating_sub(last) > *after)
        {
            ns += wake.draw(stream);
        }
        if let (true, Some((calls, window))) = (signs, model.throttle) {
            if self.began.len() >= calls as usize {
                ns = ns.max((self.began[0] + window).saturating_sub(begins));
                self.began.remove(0);
            }
            self.began.push(begins + ns);
        }
        ns += model.programs.calls[call as usize].draw(stream);
        self.last_used = Some(begins + ns);
        ns
    }
}
