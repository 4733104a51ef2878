// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A PKCS#11 module, its functions behind safe ones. All `unsafe` of the crate is here.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;

use cryptoki_sys::*;
use libloading::Library;

use crate::error::CallerError;

/// C_GetFunctionList, of a library or of this program.
pub type GetFunctionList = unsafe extern "C" fn(*mut *mut CK_FUNCTION_LIST) -> CK_RV;

/// More than any signature that is made here.
const SIGNATURE_MAX_BYTES: usize = 256;
/// More keys than anyone looks through.
const MOST_OBJECTS: usize = 256;

/// A module that is initialised; it is finalised when dropped.
pub struct Module {
    functions: CK_FUNCTION_LIST,
    /// The functions are the library's, so it stays as long as they do.
    _library: Option<Library>,
}

/// What a module says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryInfo {
    /// Who made it.
    pub manufacturer: String,
    /// What it is.
    pub description: String,
    /// Its version.
    pub version: String,
}

/// What a token says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// Its label.
    pub label: String,
    /// Who made it.
    pub manufacturer: String,
    /// What it is.
    pub model: String,
    /// Its number.
    pub serial: String,
    /// Its slot, for people.
    pub slot: String,
    /// Whether it was initialised; one that was not has no keys.
    pub initialised: bool,
    /// Whether private keys want a login.
    pub wants_login: bool,
}

/// Calls a function of the list, or says that there is none.
macro_rules! call {
    ($module:expr, $name:ident $(, $argument:expr)* $(,)?) => {{
        let function =
            $module.functions.$name.ok_or(CallerError::NoFunction(stringify!($name)))?;
        // SAFETY: the function is the module's own by this name and type; pointers are null or
        // lead to what lives through the call, with the lengths beside them (PKCS#11 2.40
        // section 5).
        match unsafe { function($($argument),*) } {
            CKR_OK => Ok(()),
            rv => Err(CallerError::Refused { call: stringify!($name), rv }),
        }
    }};
}

impl Module {
    /// Loads a shared library and initialises it.
    ///
    /// # Errors
    /// It cannot be loaded, is no module, or C_Initialize failed.
    pub fn load(path: &Path) -> Result<Module, CallerError> {
        // SAFETY: the user names a module to run; loading it runs its initialisers.
        let library = unsafe { Library::new(path) }.map_err(|error| CallerError::NotLoaded {
            path: path.to_owned(),
            why: cause(&error, path),
        })?;
        let missing = "C_GetFunctionList";
        // SAFETY: every module exports this name with this type (PKCS#11 2.40 section 5.4).
        let get = unsafe { library.get::<GetFunctionList>(b"C_GetFunctionList\0") };
        let get = *get.map_err(|_| CallerError::NoModule { path: path.to_owned(), missing })?;
        // SAFETY: it is the library's C_GetFunctionList, and the library is kept.
        unsafe { Module::of(get, Some(library)) }
    }

    /// The module that is linked into this program.
    ///
    /// # Safety
    /// `get` is a C_GetFunctionList whose functions live as long as the program.
    ///
    /// # Errors
    /// C_Initialize failed.
    pub unsafe fn linked(get: GetFunctionList) -> Result<Module, CallerError> {
        // SAFETY: as the caller has it.
        unsafe { Module::of(get, None) }
    }

    unsafe fn of(get: GetFunctionList, library: Option<Library>) -> Result<Module, CallerError> {
        let mut list: *mut CK_FUNCTION_LIST = ptr::null_mut();
        // SAFETY: there is room for one pointer.
        let rv = unsafe { get(&raw mut list) };
        if rv != CKR_OK || list.is_null() {
            return Err(CallerError::Refused { call: "C_GetFunctionList", rv });
        }
        // SAFETY: the list is valid as long as the library is; it is copied, which a reader may.
        let module = Module { functions: unsafe { *list }, _library: library };
        // Null: one thread calls (section 5.4).
        call!(module, C_Initialize, ptr::null_mut())?;
        Ok(module)
    }

    /// C_GetInfo.
    ///
    /// # Errors
    /// The call failed.
    pub fn info(&self) -> Result<LibraryInfo, CallerError> {
        let mut info = CK_INFO::default();
        call!(self, C_GetInfo, &raw mut info)?;
        Ok(LibraryInfo {
            manufacturer: text(&info.manufacturerID),
            description: text(&info.libraryDescription),
            version: format!("{}.{}", info.libraryVersion.major, info.libraryVersion.minor),
        })
    }

    /// C_GetSlotList: the slots with a token.
    ///
    /// # Errors
    /// The call failed.
    pub fn slots(&self) -> Result<Vec<CK_SLOT_ID>, CallerError> {
        loop {
            let mut count: CK_ULONG = 0;
            call!(self, C_GetSlotList, CK_TRUE, ptr::null_mut(), &raw mut count)?;
            let mut slots = vec![0; count as usize];
            match call!(self, C_GetSlotList, CK_TRUE, slots.as_mut_ptr(), &raw mut count) {
                // A token came in between.
                Err(CallerError::Refused { rv: CKR_BUFFER_TOO_SMALL, .. }) => {}
                result => {
                    result?;
                    slots.truncate(count as usize);
                    return Ok(slots);
                }
            }
        }
    }

    /// C_GetSlotInfo and C_GetTokenInfo.
    ///
    /// # Errors
    /// A call failed.
    pub fn token(&self, slot: CK_SLOT_ID) -> Result<TokenInfo, CallerError> {
        let (mut place, mut info) = (CK_SLOT_INFO::default(), CK_TOKEN_INFO::default());
        call!(self, C_GetSlotInfo, slot, &raw mut place)?;
        call!(self, C_GetTokenInfo, slot, &raw mut info)?;
        Ok(TokenInfo {
            label: text(&info.label),
            manufacturer: text(&info.manufacturerID),
            model: text(&info.model),
            serial: text(&info.serialNumber),
            slot: text(&place.slotDescription),
            initialised: info.flags & CKF_TOKEN_INITIALIZED != 0,
            wants_login: info.flags & CKF_LOGIN_REQUIRED != 0,
        })
    }

    /// C_OpenSession, to read alone.
    ///
    /// # Errors
    /// The call failed.
    pub fn open_session(&self, slot: CK_SLOT_ID) -> Result<CK_SESSION_HANDLE, CallerError> {
        let mut session = 0;
        let flags = CKF_SERIAL_SESSION;
        call!(self, C_OpenSession, slot, flags, ptr::null_mut(), None, &raw mut session)?;
        Ok(session)
    }

    /// C_CloseSession.
    ///
    /// # Errors
    /// The call failed.
    pub fn close_session(&self, session: CK_SESSION_HANDLE) -> Result<(), CallerError> {
        call!(self, C_CloseSession, session)
    }

    /// C_Login of the user.
    ///
    /// # Errors
    /// The call failed, `CKR_USER_ALREADY_LOGGED_IN` among others.
    pub fn log_in(&self, session: CK_SESSION_HANDLE, pin: &[u8]) -> Result<(), CallerError> {
        let length = pin.len() as CK_ULONG;
        call!(self, C_Login, session, CKU_USER, pin.as_ptr().cast_mut(), length)
    }

    /// C_FindObjectsInit, C_FindObjects until there are no more, C_FindObjectsFinal.
    ///
    /// # Errors
    /// A call failed.
    pub fn find(
        &self,
        session: CK_SESSION_HANDLE,
        template: &mut [(CK_ATTRIBUTE_TYPE, Vec<u8>)],
    ) -> Result<Vec<CK_OBJECT_HANDLE>, CallerError> {
        let mut attributes: Vec<CK_ATTRIBUTE> = template
            .iter_mut()
            .map(|(type_, value)| CK_ATTRIBUTE {
                type_: *type_,
                pValue: value.as_mut_ptr().cast::<c_void>(),
                ulValueLen: value.len() as CK_ULONG,
            })
            .collect();
        let count = attributes.len() as CK_ULONG;
        call!(self, C_FindObjectsInit, session, attributes.as_mut_ptr(), count)?;
        let mut found = vec![0; MOST_OBJECTS];
        let mut filled = 0;
        while filled < found.len() {
            let room = &mut found[filled..];
            let mut count: CK_ULONG = 0;
            let most = room.len() as CK_ULONG;
            call!(self, C_FindObjects, session, room.as_mut_ptr(), most, &raw mut count)?;
            if count == 0 {
                break;
            }
            filled += (count as usize).min(room.len());
        }
        found.truncate(filled);
        call!(self, C_FindObjectsFinal, session)?;
        Ok(found)
    }

    /// C_GetAttributeValue of one attribute; `None` if the object does not have it or tell it.
    #[must_use]
    pub fn attribute(
        &self,
        session: CK_SESSION_HANDLE,
        object: CK_OBJECT_HANDLE,
        type_: CK_ATTRIBUTE_TYPE,
    ) -> Option<Vec<u8>> {
        let mut attribute = CK_ATTRIBUTE { type_, pValue: ptr::null_mut(), ulValueLen: 0 };
        let get = |attribute: &mut CK_ATTRIBUTE| -> Result<(), CallerError> {
            call!(self, C_GetAttributeValue, session, object, attribute, 1)
        };
        get(&mut attribute).ok()?;
        let mut value = vec![0_u8; usize::try_from(attribute.ulValueLen).ok()?];
        attribute.pValue = value.as_mut_ptr().cast::<c_void>();
        get(&mut attribute).ok()?;
        value.truncate(attribute.ulValueLen as usize);
        Some(value)
    }

    /// C_SignInit with CKM_ECDSA, which takes a hash as it is.
    ///
    /// # Errors
    /// The call failed.
    pub fn sign_init(
        &self,
        session: CK_SESSION_HANDLE,
        key: CK_OBJECT_HANDLE,
    ) -> Result<(), CallerError> {
        let mut mechanism =
            CK_MECHANISM { mechanism: CKM_ECDSA, pParameter: ptr::null_mut(), ulParameterLen: 0 };
        call!(self, C_SignInit, session, &raw mut mechanism, key)
    }

    /// C_Sign: r and s.
    ///
    /// # Errors
    /// The call failed.
    pub fn sign(&self, session: CK_SESSION_HANDLE, hash: &[u8]) -> Result<Vec<u8>, CallerError> {
        let mut signature = vec![0_u8; SIGNATURE_MAX_BYTES];
        let mut length = signature.len() as CK_ULONG;
        let (data, bytes) = (hash.as_ptr().cast_mut(), hash.len() as CK_ULONG);
        call!(self, C_Sign, session, data, bytes, signature.as_mut_ptr(), &raw mut length)?;
        signature.truncate(length as usize);
        Ok(signature)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some(finalise) = self.functions.C_Finalize {
            // SAFETY: it was initialised, and no other call is under way.
            unsafe { finalise(ptr::null_mut()) };
        }
    }
}

/// A field that is filled up with blanks.
fn text(field: &[CK_UTF8CHAR]) -> String {
    String::from_utf8_lossy(field).trim_end_matches([' ', '\0']).to_owned()
}

/// The loader's own words without the path, which stands before them anyway.
fn cause(error: &libloading::Error, path: &Path) -> String {
    use std::error::Error;
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let line = cause.lines().next().unwrap_or("cannot be loaded");
    line.trim_start_matches(&format!("{}: ", path.display())).to_owned()
}
