// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What programs behind one modem tell each other.

use pyo3::prelude::*;
use warifu_iotsafe_client::transport::ChannelRecord;

/// Writes down that this process has opened a channel of the card behind the line with this device
/// number: if it is killed, the next program of the user closes it. The caller holds the line's
/// lock. A record that cannot be kept is none.
#[pyfunction]
pub(crate) fn modem_channel_opened(device: u64, channel: u8) {
    ChannelRecord::of_device(device).opened(channel);
}

/// Writes down that the channel is closed.
#[pyfunction]
pub(crate) fn modem_channel_closed(device: u64, channel: u8) {
    ChannelRecord::of_device(device).closed(channel);
}
