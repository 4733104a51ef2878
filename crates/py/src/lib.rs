// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Python module `warifu._core`: conversions only. Its types for Python's checkers are in
//! `python/warifu/_core.pyi`; names and meanings there and here are the same.

mod accelerator;
mod columns;
mod dds;
mod device;
mod discovery;
mod error;
mod fs_user;
mod m3;
mod metrics;
mod missing;
mod modem;
mod observations;
mod predict;
mod replay;
mod study;
mod tls;
mod units;

use pyo3::prelude::*;
use warifu_model::{Aead, CertificateType, TlsVersion};

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("BUILD_PROFILE", warifu_os::BUILD_PROFILE)?;
    module.add("SCHEMA_VERSION", warifu_results::SCHEMA_VERSION)?;
    module.add("WarifuError", module.py().get_type::<error::WarifuError>())?;
    module.add("StorageError", module.py().get_type::<error::StorageError>())?;
    module.add_class::<study::Study>()?;
    module.add_class::<study::CaseView>()?;
    module.add_function(wrap_pyfunction!(study::mistakes, module)?)?;
    module.add_function(wrap_pyfunction!(study::trace_text, module)?)?;
    module.add_function(wrap_pyfunction!(study::request_text, module)?)?;
    module.add_function(wrap_pyfunction!(study::kernel_release, module)?)?;
    module.add_function(wrap_pyfunction!(study::profile_mistake, module)?)?;
    module.add("AEADS", tls::words::<Aead>())?;
    module.add("CERTIFICATES", tls::words::<CertificateType>())?;
    module.add("TLS_VERSIONS", tls::words::<TlsVersion>())?;
    module.add_function(wrap_pyfunction!(tls::cipher_suite, module)?)?;
    module.add_function(wrap_pyfunction!(tls::aead, module)?)?;
    module.add_function(wrap_pyfunction!(tls::resumptions, module)?)?;
    module.add_function(wrap_pyfunction!(accelerator::accelerator, module)?)?;
    module.add_function(wrap_pyfunction!(discovery::dds_discovery, module)?)?;
    module.add_function(wrap_pyfunction!(dds::dds_path, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(device::device, module)?)?;
    module.add_function(wrap_pyfunction!(device::key_store, module)?)?;
    module.add_function(wrap_pyfunction!(units::duration_ns, module)?)?;
    module.add_function(wrap_pyfunction!(units::clock_hz, module)?)?;
    module.add_function(wrap_pyfunction!(units::byte_count, module)?)?;
    module.add_function(wrap_pyfunction!(missing::missing_operations, module)?)?;
    module.add_function(wrap_pyfunction!(missing::primitives, module)?)?;
    module.add_function(wrap_pyfunction!(missing::step_costs, module)?)?;
    module.add_function(wrap_pyfunction!(missing::cost_choices, module)?)?;
    module.add_function(wrap_pyfunction!(missing::operation_costs, module)?)?;
    module.add_function(wrap_pyfunction!(missing::device_measures_ciphers, module)?)?;
    module.add_function(wrap_pyfunction!(fs_user::set_fs_user, module)?)?;
    module.add_function(wrap_pyfunction!(fs_user::fs_user, module)?)?;
    module.add_function(wrap_pyfunction!(modem::modem_channel_opened, module)?)?;
    module.add_function(wrap_pyfunction!(modem::modem_channel_closed, module)?)?;
    module.add_function(wrap_pyfunction!(predict::predict, module)?)?;
    module.add_function(wrap_pyfunction!(replay::varying_messages, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(observations::write_observations, module)?)?;
    module.add_function(wrap_pyfunction!(observations::begin_manifest, module)?)?;
    module.add_function(wrap_pyfunction!(observations::read_manifest, module)?)?;
    module.add_function(wrap_pyfunction!(observations::write_manifest, module)?)?;
    module.add_function(wrap_pyfunction!(observations::replace_results, module)?)?;
    module.add_function(wrap_pyfunction!(columns::settings, module)?)?;
    module.add_function(wrap_pyfunction!(columns::columns, module)?)?;
    module.add_function(wrap_pyfunction!(observations::weakest_evidence, module)?)?;
    module.add("M3_MAX_OUTPUT", warifu_m3::semihosting::MAX_OUTPUT)?;
    module.add_function(wrap_pyfunction!(m3::m3_chip, module)?)?;
    module.add_function(wrap_pyfunction!(m3::m3_chips, module)?)?;
    module.add_function(wrap_pyfunction!(m3::m3_run, module)?)?;
    module.add_class::<m3::M3Debugger>()?;
    module.add_function(wrap_pyfunction!(m3::m3_trace, module)?)?;
    module.add_function(wrap_pyfunction!(m3::m3_profile, module)?)?;
    module.add_function(wrap_pyfunction!(m3::m3_taint, module)?)?;
    module.add_function(wrap_pyfunction!(m3::m3_size, module)?)?;
    Ok(())
}
