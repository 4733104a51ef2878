// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an acknowledgement brought, as the steps of processing it tell each other.

/// What an acknowledgement brought (the kernel's `FLAG_*`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub data: bool,
    pub window_update: bool,
    pub data_acked: bool,
    pub syn_acked: bool,
    pub advanced: bool,
    pub data_sacked: bool,
    pub original_acked: bool,
    pub dsacking: bool,
    pub dsack_of_probe: bool,
    pub set_timer: bool,
    pub lost_retransmission: bool,
}

impl Flags {
    pub(super) fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    pub(super) fn not_duplicate(&self) -> bool {
        self.data || self.window_update || self.acked()
    }

    /// `tcp_ack_is_dubious`, but for the state.
    pub(super) fn dubious(&self) -> bool {
        !self.not_duplicate() || self.data_sacked || self.dsacking
    }

    pub(super) fn plain_duplicate(&self) -> bool {
        !(self.advanced || self.not_duplicate() || self.dsacking)
    }
}
