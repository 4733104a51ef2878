// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The function lists and interfaces (PKCS#11 2.40 section 5.4, 3.0 section 5.4).

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::ptr;

use cryptoki_sys::*;

use super::general_purpose::get_info_2_40;
use super::memory::{deliver_list, put};
use super::*;
use crate::functions::general_purpose::{VERSION_2_40, VERSION_3_0};
use crate::rv::Rv;

/// The name of the standard's own interfaces.
const NAME: &CStr = c"PKCS 11";

/// A table that is only read, so that threads may share its pointers.
struct Shared<T>(T);

// SAFETY: nothing writes to it, and its pointers lead to functions and statics.
unsafe impl<T> Sync for Shared<T> {}

/// The functions of 2.40, and others behind them.
macro_rules! functions {
    (@ $list:ident, $version:expr, $get_info:expr, $($name:ident)*) => {
        $list { version: $version, C_GetInfo: Some($get_info), $($name: Some($name)),* }
    };
    ($list:ident, $version:expr, $get_info:expr, $($others:ident)*) => {
        functions! { @ $list, $version, $get_info,
            C_Initialize C_Finalize C_GetFunctionList C_GetSlotList C_GetSlotInfo
            C_GetTokenInfo C_GetMechanismList C_GetMechanismInfo C_InitToken C_InitPIN
            C_SetPIN C_OpenSession C_CloseSession C_CloseAllSessions C_GetSessionInfo
            C_GetOperationState C_SetOperationState C_Login C_Logout C_CreateObject
            C_CopyObject C_DestroyObject C_GetObjectSize C_GetAttributeValue
            C_SetAttributeValue C_FindObjectsInit C_FindObjects C_FindObjectsFinal
            C_EncryptInit C_Encrypt C_EncryptUpdate C_EncryptFinal C_DecryptInit C_Decrypt
            C_DecryptUpdate C_DecryptFinal C_DigestInit C_Digest C_DigestUpdate C_DigestKey
            C_DigestFinal C_SignInit C_Sign C_SignUpdate C_SignFinal C_SignRecoverInit
            C_SignRecover C_VerifyInit C_Verify C_VerifyUpdate C_VerifyFinal
            C_VerifyRecoverInit C_VerifyRecover C_DigestEncryptUpdate C_DecryptDigestUpdate
            C_SignEncryptUpdate C_DecryptVerifyUpdate C_GenerateKey C_GenerateKeyPair
            C_WrapKey C_UnwrapKey C_DeriveKey C_SeedRandom C_GenerateRandom
            C_GetFunctionStatus C_CancelFunction C_WaitForSlotEvent
            $($others)*
        }
    };
}

static LIST_2_40: Shared<CK_FUNCTION_LIST> =
    Shared(functions!(CK_FUNCTION_LIST, VERSION_2_40, get_info_2_40,));

static LIST_3_0: Shared<CK_FUNCTION_LIST_3_0> = Shared(functions! {
    CK_FUNCTION_LIST_3_0, VERSION_3_0, C_GetInfo,
    C_GetInterfaceList C_GetInterface C_LoginUser C_SessionCancel C_MessageEncryptInit
    C_EncryptMessage C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal
    C_MessageDecryptInit C_DecryptMessage C_DecryptMessageBegin C_DecryptMessageNext
    C_MessageDecryptFinal C_MessageSignInit C_SignMessage C_SignMessageBegin C_SignMessageNext
    C_MessageSignFinal C_MessageVerifyInit C_VerifyMessage C_VerifyMessageBegin
    C_VerifyMessageNext C_MessageVerifyFinal
});

/// Interfaces in memory that may be written: OpenSC's pkcs11-spy puts its own functions into the
/// interface that it is given.
struct Writable<T>(UnsafeCell<T>);

// SAFETY: nothing here writes to it; who does so elsewhere answers for the threads there.
unsafe impl<T> Sync for Writable<T> {}

const fn interface(list: *const c_void) -> CK_INTERFACE {
    CK_INTERFACE {
        pInterfaceName: NAME.as_ptr().cast::<CK_UTF8CHAR>().cast_mut(),
        pFunctionList: list.cast_mut(),
        flags: 0,
    }
}

static INTERFACE_2_40: Writable<CK_INTERFACE> =
    Writable(UnsafeCell::new(interface((&raw const LIST_2_40.0).cast())));
static INTERFACE_3_0: Writable<CK_INTERFACE> =
    Writable(UnsafeCell::new(interface((&raw const LIST_3_0.0).cast())));

/// The interfaces with their versions, the preferred one first.
const INTERFACES: [(CK_VERSION, &Writable<CK_INTERFACE>); 2] =
    [(VERSION_3_0, &INTERFACE_3_0), (VERSION_2_40, &INTERFACE_2_40)];

entries! {
    /// The functions of PKCS#11 2.40. Works before C_Initialize.
    fn C_GetFunctionList(list: *mut *mut CK_FUNCTION_LIST) {
        // SAFETY: null or room for a pointer by the caller's promise.
        unsafe { put(list, (&raw const LIST_2_40.0).cast_mut()) }
    }

    /// The interfaces. Works before C_Initialize.
    fn C_GetInterfaceList(list: *mut CK_INTERFACE, count: *mut CK_ULONG) {
        // SAFETY: they are initialised and stay where they are.
        let interfaces = INTERFACES.map(|(_, place)| unsafe { ptr::read(place.0.get()) });
        // SAFETY: null or as long as the count says by the caller's promise.
        unsafe { deliver_list(&interfaces, list, count) }
    }

    /// The interface of a name, a version and flags; of any where they are null. Works before
    /// C_Initialize.
    fn C_GetInterface(
        name: *mut CK_UTF8CHAR,
        version: *mut CK_VERSION,
        place: *mut *mut CK_INTERFACE,
        flags: CK_FLAGS,
    ) {
        // SAFETY: null or text that ends with a zero by the caller's promise.
        let named = name.is_null() || unsafe { CStr::from_ptr(name.cast()) } == NAME;
        let version = if version.is_null() {
            None
        } else {
            // SAFETY: not null, a CK_VERSION by the caller's promise.
            let CK_VERSION { major, minor } = unsafe { ptr::read_unaligned(version) };
            Some((major, minor))
        };
        let wanted = |CK_VERSION { major, minor }: CK_VERSION| {
            version.is_none_or(|version| version == (major, minor))
        };
        // No interface has a flag, so none is fork safe.
        let found = INTERFACES.iter().find(|(own, _)| named && flags == 0 && wanted(*own));
        let (_, interface) = found.ok_or(Rv(CKR_ARGUMENTS_BAD))?;
        // SAFETY: null or room for a pointer by the caller's promise.
        unsafe { put(place, interface.0.get()) }
    }
}
