// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parallel function management functions (PKCS#11 2.40 section 5.16), which the standard keeps for
//! old programs.

use cryptoki_sys::*;

use super::entries;
use crate::functions::general_purpose::current;
use crate::rv::fail;

entries! {
    /// A legacy function that returns an error.
    fn C_GetFunctionStatus(session: CK_SESSION_HANDLE) {
        current()?.session(session)?;
        fail(CKR_FUNCTION_NOT_PARALLEL)
    }

    /// A legacy function that returns an error.
    fn C_CancelFunction(session: CK_SESSION_HANDLE) {
        current()?.session(session)?;
        fail(CKR_FUNCTION_NOT_PARALLEL)
    }
}
