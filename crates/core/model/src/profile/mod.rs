// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles: the figures of devices, key stores, links and kernels, each with its source and
//! kind.

mod calibrated;
mod catalog;
mod condition;
mod device;
mod device_file;
mod figure;
mod heading;
mod inputs;
mod kernel;
mod key_store;
mod link;

pub use catalog::{Catalog, ProfileKind};
pub use device::{Cost, DeviceProfile};
pub use figure::Input;
pub use inputs::{emulation_inputs, inputs, inputs_where};
pub use kernel::KernelProfile;
pub use key_store::{KeyStoreProfile, Sleep, StandIn, Throttle};
pub use link::LinkProfile;
