// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which middleware and which cryptographic libraries this process has loaded.

use std::ffi::{CStr, c_int, c_void};

use crate::record;

/// Beginnings of file names: DDS implementations, ROS 2's adapters to them, and cryptography.
const NAMED: [&str; 16] = [
    "libfastrtps",
    "libfastdds",
    "libddsc.",
    "libdds_security",
    "libnddsc",
    "libOpenDDS_",
    "librmw_",
    "libwarifu_dds",
    "libcrypto",
    "libssl",
    "libmbedcrypto",
    "libwolfssl",
    "libgnutls",
    "libnss3",
    "libgcrypt",
    "libsodium",
];

/// Puts the paths of those that are loaded now on record, if they are more than before.
pub fn note() {
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid entry, and `data` as it was given.
        let (paths, name) = unsafe { (&mut *data.cast::<Vec<String>>(), (*info).dlpi_name) };
        if !name.is_null() {
            // SAFETY: the dynamic linker's names are terminated.
            let path = unsafe { CStr::from_ptr(name) }.to_string_lossy();
            let file = path.rsplit('/').next().unwrap_or_default();
            if NAMED.iter().any(|named| file.starts_with(named)) {
                paths.push(path.into_owned());
            }
        }
        0
    }
    let Some(file) = record::file() else { return };
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: `visit` matches the signature, and `paths` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut paths).cast()) };
    paths.sort();
    file.set_libraries(&paths.join("\n"));
}
