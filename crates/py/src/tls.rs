// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which choices of TLS go together, as the model has it.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warifu_model::{Aead, CertificateType, CipherSuite, Keyword, Session, TlsVersion};

use crate::error::warifu_error;

/// The words of a closed choice.
pub(crate) fn words<T: Keyword>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.name()).collect()
}

/// The suite of a version, certificate type and AEAD, by its IANA name.
#[pyfunction]
pub(crate) fn cipher_suite(tls: &str, certificate: &str, aead: &str) -> PyResult<&'static str> {
    let tls = word::<TlsVersion>("tls", tls)?;
    let certificate = word::<CertificateType>("certificate", certificate)?;
    Ok(CipherSuite::of(tls, certificate, word::<Aead>("aead", aead)?).name())
}

/// The AEAD of a cipher suite.
#[pyfunction]
pub(crate) fn aead(cipher_suite: &str) -> PyResult<&'static str> {
    Ok(word::<CipherSuite>("cipher_suite", cipher_suite)?.aead().name())
}

/// How connections of a version can resume a session, the usual way first: name, and whether there
/// is a key exchange in it.
#[pyfunction]
pub(crate) fn resumptions<'py>(py: Python<'py>, tls: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let tls = word::<TlsVersion>("tls", tls)?;
    let usual = Session::resumed(tls);
    let fits = |session: &Session| session.is_resumed() && session.fits(tls) && *session != usual;
    let others = Session::ALL.iter().copied().filter(fits);
    let view = |session: Session| {
        let item = PyDict::new(py);
        item.set_item("name", session.name())?;
        item.set_item("has_key_exchange", session.has_key_exchange())?;
        Ok(item)
    };
    [usual].into_iter().chain(others).map(view).collect()
}

fn word<T: Keyword>(key: &str, text: &str) -> PyResult<T> {
    T::from_word(text).map_err(|expected| warifu_error(format!("{key} is {text:?}: {expected}")))
}
