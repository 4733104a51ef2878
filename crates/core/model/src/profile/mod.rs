// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles: the figures of devices, recipes, key stores, links, TCP implementations and
//! accelerators, each with its source and kind.

mod accelerator;
mod band;
mod calibrated;
mod calibration_case;
mod catalog;
mod cipher;
mod condition;
mod cost_use;
mod costs;
mod dependence;
mod device;
mod device_file;
mod figure;
mod heading;
mod inputs;
mod kernel_release;
mod key_store;
mod link;
mod lowering;
mod machine;
mod rate;
mod recipe;
mod shown;
mod span;
mod speed;
mod stand_in;
mod tcp;

pub use accelerator::{AcceleratorProfile, Terms};
pub use band::{Band, BandOf};
pub use calibration_case::CalibrationCase;
pub use catalog::{Catalog, ProfileKind};
pub use cipher::CipherCost;
pub use cost_use::{CostSource, CostUse};
pub use costs::Costs;
pub use dependence::{cost_choices, every_choice};
pub use device::{Cost, DeviceProfile};
pub use figure::{FigureOf, Input};
pub use inputs::{emulation_inputs, inputs, inputs_where};
pub use kernel_release::KernelRelease;
pub use key_store::{KeyStoreProfile, Sleep, StandIn, Throttle};
pub use link::LinkProfile;
pub use lowering::{Lowered, LoweredPart};
pub use machine::{Code, Hertz, Machine};
pub use recipe::RecipeProfile;
pub use shown::Shown;
pub use span::Span;
pub use speed::Speed;
pub use tcp::TcpProfile;
