// SPDX-License-Identifier: Apache-2.0 OR MIT
//! General-purpose functions (PKCS#11 2.40 section 5.4, 3.0 section 5.4).

use std::ptr;

use cryptoki_sys::*;

use crate::bench::{Bench, functions, mechanism};

/// A library that is not initialised.
struct Bare {
    f: &'static CK_FUNCTION_LIST_3_0,
}

#[test]
fn calls_before_c_initialize() {
    let alone = Bench::new(None);
    assert_eq!(call!(alone, C_Finalize, ptr::null_mut()), CKR_OK);
    let bare = Bare { f: functions() };
    let (null, mut count) = (ptr::null_mut(), 0);
    let (mut info, mut token) = (CK_INFO::default(), CK_TOKEN_INFO::default());
    let mut sha256 = mechanism(CKM_SHA256);
    for (name, rv) in [
        ("C_Finalize", call!(bare, C_Finalize, null)),
        ("C_GetInfo", call!(bare, C_GetInfo, &mut info)),
        ("C_GetSlotList", call!(bare, C_GetSlotList, 0, ptr::null_mut(), &mut count)),
        ("C_GetTokenInfo", call!(bare, C_GetTokenInfo, 0, &mut token)),
        ("C_OpenSession", call!(bare, C_OpenSession, 0, 4, null, None, &mut count)),
        ("C_CloseSession", call!(bare, C_CloseSession, 1)),
        ("C_Login", call!(bare, C_Login, 1, CKU_USER, ptr::null_mut(), 0)),
        ("C_FindObjectsInit", call!(bare, C_FindObjectsInit, 1, ptr::null_mut(), 0)),
        ("C_SignInit", call!(bare, C_SignInit, 1, ptr::null_mut(), 1)),
        ("C_Sign", call!(bare, C_Sign, 1, ptr::null_mut(), 0, ptr::null_mut(), &mut count)),
        ("C_DigestInit", call!(bare, C_DigestInit, 1, &mut sha256)),
        ("C_GenerateRandom", call!(bare, C_GenerateRandom, 1, ptr::null_mut(), 1)),
        ("C_EncryptInit", call!(bare, C_EncryptInit, 1, ptr::null_mut(), 1)),
    ] {
        assert_eq!(rv, CKR_CRYPTOKI_NOT_INITIALIZED, "{name}");
    }
    assert_eq!(call!(bare, C_Initialize, null), CKR_OK);
}

unsafe extern "C" fn create_mutex(_: *mut *mut std::ffi::c_void) -> CK_RV {
    CKR_OK
}

unsafe extern "C" fn use_mutex(_: *mut std::ffi::c_void) -> CK_RV {
    CKR_OK
}

#[test]
fn locking_arguments_of_c_initialize() {
    let bench = Bench::new(None);
    assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_CRYPTOKI_ALREADY_INITIALIZED);
    let (create, others) = (Some(create_mutex as _), Some(use_mutex as _));
    let some = CK_C_INITIALIZE_ARGS { CreateMutex: create, ..Default::default() };
    let all = CK_C_INITIALIZE_ARGS {
        DestroyMutex: others,
        LockMutex: others,
        UnlockMutex: others,
        ..some
    };
    let reserved = ptr::from_ref(&all).cast_mut().cast();
    for (name, args, expected) in [
        ("nothing given", CK_C_INITIALIZE_ARGS::default(), CKR_OK),
        ("one callback alone", some, CKR_ARGUMENTS_BAD),
        ("callbacks only", all, CKR_CANT_LOCK),
        ("or the system's", CK_C_INITIALIZE_ARGS { flags: CKF_OS_LOCKING_OK, ..all }, CKR_OK),
        (
            "reserved",
            CK_C_INITIALIZE_ARGS { pReserved: reserved, ..Default::default() },
            CKR_ARGUMENTS_BAD,
        ),
    ] {
        call!(bench, C_Finalize, ptr::null_mut());
        let mut args = args;
        let rv = call!(bench, C_Initialize, ptr::from_mut(&mut args).cast());
        assert_eq!(rv, expected, "{name}");
    }
    assert_eq!(call!(bench, C_Initialize, ptr::null_mut()), CKR_OK);
    assert_eq!(call!(bench, C_Finalize, reserved), CKR_ARGUMENTS_BAD);
}

#[test]
fn interfaces_by_name_and_version() {
    let bench = Bench::new(None);
    let mut count = 0;
    assert_eq!(call!(bench, C_GetInterfaceList, ptr::null_mut(), &mut count), CKR_OK);
    assert_eq!(count, 2);
    let get = |name: Option<&std::ffi::CStr>, version: Option<(u8, u8)>, flags| {
        let mut version = version.map(|(major, minor)| CK_VERSION { major, minor });
        let name = name.map_or(ptr::null_mut(), |name| name.as_ptr().cast_mut().cast());
        let version = version.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        let mut interface = ptr::null_mut();
        call!(bench, C_GetInterface, name, version, &mut interface, flags)
    };
    for (name, version, flags, expected) in [
        (None, None, 0, CKR_OK),
        (Some(c"PKCS 11"), Some((2, 40)), 0, CKR_OK),
        (Some(c"PKCS 11"), Some((3, 0)), 0, CKR_OK),
        (Some(c"PKCS 11"), Some((3, 2)), 0, CKR_ARGUMENTS_BAD),
        (Some(c"Vendor"), None, 0, CKR_ARGUMENTS_BAD),
        (None, None, CKF_INTERFACE_FORK_SAFE, CKR_ARGUMENTS_BAD),
    ] {
        assert_eq!(get(name, version, flags), expected, "{name:?} {version:?}");
    }
}
