// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looking profiles up, and what to say of one that is not there.

use warifu_model::{Case, Catalog, Costs, Error, KeyStoreProfile, ProfileKind};

/// The costs of a case's ends, the device's first, as its connection finds them after its pause.
pub(crate) fn ends<'a>(case: &Case, catalog: &'a Catalog) -> Result<[Costs<'a>; 2], Error> {
    let ends = [
        device(catalog, "device.profile", &case.device.profile)?,
        device(catalog, "server.profile", &case.server.profile)?,
    ];
    Ok(ends.map(|end| end.after_pause(case.pattern.pause)))
}

fn device<'a>(catalog: &'a Catalog, key: &str, name: &str) -> Result<Costs<'a>, Error> {
    catalog.costs(name).ok_or_else(|| missing(catalog, ProfileKind::Device, key, name))
}

pub(crate) fn key_store<'a>(
    catalog: &'a Catalog,
    name: &str,
) -> Result<&'a KeyStoreProfile, Error> {
    let kind = ProfileKind::KeyStore;
    catalog.key_store(name).ok_or_else(|| missing(catalog, kind, "key_store.profile", name))
}

/// What to say of a profile that is not there.
pub(crate) fn missing(catalog: &Catalog, kind: ProfileKind, key: &str, name: &str) -> Error {
    let known = catalog.names(kind).join(", ");
    let message =
        format!("is \"{name}\", which profiles/{} does not have: it has {known}", kind.folder());
    Error::new("profiles", key, message)
}
