// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles: the figures of devices, key stores, links, TCP implementations and accelerators, each
//! with its source and kind.

mod accelerator;
mod calibrated;
mod catalog;
mod cipher;
mod condition;
mod device;
mod device_file;
mod figure;
mod heading;
mod inputs;
mod kernel_release;
mod key_store;
mod link;
mod machine;
mod shown;
mod span;
mod tcp;

pub use accelerator::{AcceleratorProfile, Terms};
pub use catalog::{Catalog, ProfileKind};
pub use cipher::CipherCost;
pub use device::{Cost, DeviceProfile};
pub use figure::{FigureOf, Input};
pub use inputs::{emulation_inputs, inputs, inputs_where};
pub use kernel_release::KernelRelease;
pub use key_store::{KeyStoreProfile, Sleep, StandIn, Throttle};
pub use link::LinkProfile;
pub use machine::{Code, Hertz, Machine};
pub use shown::Shown;
pub use span::Span;
pub use tcp::TcpProfile;
