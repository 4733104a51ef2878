// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long DDS participants take to discover each other, as data.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warifu_model::{DeviceProfile, Error, Nanos};
use warifu_sim::{Discovery, HandshakeWork};

use crate::error::warifu_error;

/// Pairs are many beyond it, and multicast domains of so many are not what is asked about.
const MOST_NODES: u32 = 1_000;
const MOST_RTT_NS: u64 = 60_000_000_000;

/// The least and the most until all endpoints have matched, ns, and how many handshakes there are.
/// A device is a profile's name, text and file.
#[pyfunction]
#[pyo3(signature = (nodes, rtt_ns, *, secured, device=None))]
pub(crate) fn dds_discovery(
    py: Python<'_>,
    nodes: u32,
    rtt_ns: u64,
    secured: bool,
    device: Option<(String, String, String)>,
) -> PyResult<(u64, u64, u64)> {
    if !(2..=MOST_NODES).contains(&nodes) {
        let message = format!("{nodes} nodes: expected a number from 2 to {MOST_NODES}");
        return Err(PyValueError::new_err(message));
    }
    if rtt_ns > MOST_RTT_NS {
        return Err(PyValueError::new_err("the round trip is over 60 s: expected a shorter one"));
    }
    let work = match &device {
        Some((name, text, file)) => work_of(name, text, file).map_err(warifu_error)?,
        None => HandshakeWork::default(),
    };
    let security = secured.then_some(work);
    let discovery = Discovery { nodes, one_way: Nanos(rtt_ns / 2), security };
    let span = py.detach(|| discovery.until_matched());
    Ok((span.least.0, span.most.0, discovery.handshakes()))
}

fn work_of(name: &str, text: &str, file: &str) -> Result<HandshakeWork, Error> {
    let device = DeviceProfile::parse(name, text, file)?;
    HandshakeWork::of(&device).map_err(|missing| {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let message = format!(
            "has no cost for {}: calibrate them, or leave the device out",
            missing.join(", ")
        );
        Error::new(file, "primitive", message)
    })
}
