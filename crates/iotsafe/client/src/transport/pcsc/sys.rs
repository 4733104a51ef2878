// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls of libpcsclite that are needed (PC/SC part 5), with safe functions around them.

use std::ffi::{CStr, CString, c_char, c_long, c_ulong, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use super::super::TransportError;

type Handle = c_long;
type Code = c_long;
/// DWORD is an unsigned long in pcsclite.
type Dword = c_ulong;

const LIBRARY: &str = "libpcsclite.so.1";
const SCOPE_SYSTEM: Dword = 2;
const SHARE_SHARED: Dword = 2;
const PROTOCOL_T0: Dword = 1;
const PROTOCOL_T1: Dword = 2;
const LEAVE_CARD: Dword = 0;
const RESET_CARD: Dword = 1;
/// The most bytes of an answer: 65536 and the status word.
const ANSWER_MAX_BYTES: usize = 65_538;
/// The most bytes of an answer to reset (ISO 7816-3 section 8.2.1), rounded up.
const ATR_MAX_BYTES: usize = 64;

const OK: u32 = 0;
const E_NO_SMARTCARD: u32 = 0x8010_000c;
const E_NO_SERVICE: u32 = 0x8010_001d;
const E_NO_READERS: u32 = 0x8010_002e;
const E_UNKNOWN_READER: u32 = 0x8010_0009;
const E_READER_UNAVAILABLE: u32 = 0x8010_0017;
const W_RESET_CARD: u32 = 0x8010_0068;
const W_REMOVED_CARD: u32 = 0x8010_0069;

#[repr(C)]
struct IoRequest {
    protocol: Dword,
    length: Dword,
}

/// The functions, as libpcsclite exports them.
struct Api {
    establish: unsafe extern "C" fn(Dword, *const c_void, *const c_void, *mut Handle) -> Code,
    release: unsafe extern "C" fn(Handle) -> Code,
    list: unsafe extern "C" fn(Handle, *const c_char, *mut c_char, *mut Dword) -> Code,
    connect:
        unsafe extern "C" fn(Handle, *const c_char, Dword, Dword, *mut Handle, *mut Dword) -> Code,
    reconnect: unsafe extern "C" fn(Handle, Dword, Dword, Dword, *mut Dword) -> Code,
    disconnect: unsafe extern "C" fn(Handle, Dword) -> Code,
    begin: unsafe extern "C" fn(Handle) -> Code,
    end: unsafe extern "C" fn(Handle, Dword) -> Code,
    status: unsafe extern "C" fn(
        Handle,
        *mut c_char,
        *mut Dword,
        *mut Dword,
        *mut Dword,
        *mut u8,
        *mut Dword,
    ) -> Code,
    transmit: unsafe extern "C" fn(
        Handle,
        *const IoRequest,
        *const u8,
        Dword,
        *mut IoRequest,
        *mut u8,
        *mut Dword,
    ) -> Code,
    _library: Library,
}

impl Api {
    fn get() -> Result<&'static Api, TransportError> {
        static API: OnceLock<Result<Api, String>> = OnceLock::new();
        let api = API.get_or_init(|| Api::load().map_err(|error| error.to_string()));
        api.as_ref().map_err(|error| {
            TransportError::Gone(format!(
                "{LIBRARY} cannot be loaded ({error}); install it with: apt-get install \
                 libpcsclite1 pcscd"
            ))
        })
    }

    fn load() -> Result<Api, libloading::Error> {
        // SAFETY: libpcsclite's initialisers have no conditions, and each symbol has the
        // signature that winscard.h gives it.
        unsafe {
            let library = Library::new(LIBRARY)?;
            Ok(Api {
                establish: *library.get(b"SCardEstablishContext\0")?,
                release: *library.get(b"SCardReleaseContext\0")?,
                list: *library.get(b"SCardListReaders\0")?,
                connect: *library.get(b"SCardConnect\0")?,
                reconnect: *library.get(b"SCardReconnect\0")?,
                disconnect: *library.get(b"SCardDisconnect\0")?,
                begin: *library.get(b"SCardBeginTransaction\0")?,
                end: *library.get(b"SCardEndTransaction\0")?,
                status: *library.get(b"SCardStatus\0")?,
                transmit: *library.get(b"SCardTransmit\0")?,
                _library: library,
            })
        }
    }
}

/// The names of the readers that the PC/SC service knows.
///
/// # Errors
/// [`TransportError::Gone`] without library, service or reader; the text says how to fix it.
pub fn readers() -> Result<Vec<String>, TransportError> {
    Context::new()?.readers()
}

/// A connection to the PC/SC service.
pub(super) struct Context {
    api: &'static Api,
    handle: Handle,
}

/// A connection to a card.
pub(super) struct Card {
    context: Context,
    handle: Handle,
    protocol: Dword,
}

impl Context {
    pub(super) fn new() -> Result<Context, TransportError> {
        let api = Api::get()?;
        let mut handle = 0;
        // SAFETY: `handle` has room for the result; the reserved pointers are null.
        let code = unsafe { (api.establish)(SCOPE_SYSTEM, ptr::null(), ptr::null(), &mut handle) };
        checked(code, "pcscd")?;
        Ok(Context { api, handle })
    }

    pub(super) fn readers(&self) -> Result<Vec<String>, TransportError> {
        let mut length: Dword = 0;
        // SAFETY: a null buffer asks for the length.
        let code =
            unsafe { (self.api.list)(self.handle, ptr::null(), ptr::null_mut(), &mut length) };
        checked(code, "a reader")?;
        let mut names = vec![0_u8; length as usize];
        // SAFETY: `names` has room for `length` bytes.
        let code = unsafe {
            (self.api.list)(self.handle, ptr::null(), names.as_mut_ptr().cast(), &mut length)
        };
        checked(code, "a reader")?;
        names.truncate(length as usize);
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    pub(super) fn connect(self, wanted: Option<&str>) -> Result<Card, TransportError> {
        let readers = self.readers()?;
        let fits = |name: &&String| wanted.is_none_or(|wanted| name.contains(wanted));
        let mut error = TransportError::Gone(format!(
            "no PC/SC reader with {:?} in its name; there are: {}",
            wanted.unwrap_or_default(),
            readers.join(", ")
        ));
        for reader in readers.iter().filter(fits) {
            let Ok(name) = CString::new(reader.as_str()) else { continue };
            match self.connect_to(&name) {
                Ok((handle, protocol)) => return Ok(Card { context: self, handle, protocol }),
                Err(reason) => error = reason,
            }
        }
        Err(error)
    }

    fn connect_to(&self, reader: &CStr) -> Result<(Handle, Dword), TransportError> {
        let (mut handle, mut protocol) = (0, 0);
        // SAFETY: the name ends with a zero; both places are of the types asked for.
        let code = unsafe {
            (self.api.connect)(
                self.handle,
                reader.as_ptr(),
                SHARE_SHARED,
                PROTOCOL_T0 | PROTOCOL_T1,
                &mut handle,
                &mut protocol,
            )
        };
        checked(code, &reader.to_string_lossy())?;
        Ok((handle, protocol))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used again.
        unsafe { (self.api.release)(self.handle) };
    }
}

impl Card {
    /// Whether the card speaks T=0.
    pub(super) fn t0(&self) -> bool {
        self.protocol == PROTOCOL_T0
    }

    /// Acknowledges a reset by another program.
    pub(super) fn reconnect(&mut self) -> Result<(), TransportError> {
        self.connect_again(LEAVE_CARD)
    }

    /// Resets the card.
    pub(super) fn reset(&mut self) -> Result<(), TransportError> {
        self.connect_again(RESET_CARD)
    }

    fn connect_again(&mut self, how: Dword) -> Result<(), TransportError> {
        let protocols = PROTOCOL_T0 | PROTOCOL_T1;
        // SAFETY: the handle is ours; there is room for the protocol.
        let code = unsafe {
            (self.context.api.reconnect)(
                self.handle,
                SHARE_SHARED,
                protocols,
                how,
                &mut self.protocol,
            )
        };
        checked(code, "the card")
    }

    /// The answer to reset.
    pub(super) fn atr(&self) -> Result<Vec<u8>, TransportError> {
        let mut atr = vec![0; ATR_MAX_BYTES];
        let mut length = ATR_MAX_BYTES as Dword;
        let (mut name_length, mut state, mut protocol) = (0, 0, 0);
        // SAFETY: a null name is not written; `atr` has `length` bytes.
        let code = unsafe {
            (self.context.api.status)(
                self.handle,
                ptr::null_mut(),
                &mut name_length,
                &mut state,
                &mut protocol,
                atr.as_mut_ptr(),
                &mut length,
            )
        };
        checked(code, "the card")?;
        atr.truncate(length as usize);
        Ok(atr)
    }

    pub(super) fn begin(&self) -> Result<(), TransportError> {
        // SAFETY: the handle is ours.
        checked(unsafe { (self.context.api.begin)(self.handle) }, "the card")
    }

    pub(super) fn end(&self) {
        // SAFETY: the handle is ours. Without a transaction it is an error without effect.
        unsafe { (self.context.api.end)(self.handle, LEAVE_CARD) };
    }

    pub(super) fn transmit(&self, apdu: &[u8]) -> Result<Vec<u8>, TransportError> {
        let request =
            IoRequest { protocol: self.protocol, length: size_of::<IoRequest>() as Dword };
        let mut answer = vec![0; ANSWER_MAX_BYTES];
        let mut length = ANSWER_MAX_BYTES as Dword;
        // SAFETY: command and answer are given with their lengths; the answer's header is unused.
        let code = unsafe {
            (self.context.api.transmit)(
                self.handle,
                &request,
                apdu.as_ptr(),
                apdu.len() as Dword,
                ptr::null_mut(),
                answer.as_mut_ptr(),
                &mut length,
            )
        };
        checked(code, "the card")?;
        answer.truncate(length as usize);
        Ok(answer)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used again.
        unsafe { (self.context.api.disconnect)(self.handle, LEAVE_CARD) };
    }
}

/// The result of a return code; `what` is what the call was about.
fn checked(code: Code, what: &str) -> Result<(), TransportError> {
    // Codes have 32 bits; a long may carry their sign along.
    match code as u32 {
        OK => Ok(()),
        W_RESET_CARD => Err(TransportError::CardReset),
        E_NO_SERVICE => Err(TransportError::Gone(
            "the PC/SC service is not running; start it with: systemctl start pcscd".to_owned(),
        )),
        E_NO_READERS | E_UNKNOWN_READER | E_READER_UNAVAILABLE => {
            Err(TransportError::Gone("no PC/SC reader: plug one in".to_owned()))
        }
        E_NO_SMARTCARD | W_REMOVED_CARD => Err(TransportError::Gone(format!("no card in {what}"))),
        code => Err(TransportError::Gone(format!("{what}: PC/SC error {code:08X}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_codes_are_32_bits_wide() {
        for code in [0x8010_0068_u32 as i32 as Code, 0x8010_0068] {
            assert_eq!(checked(code, "it"), Err(TransportError::CardReset));
        }
        let gone = checked(0x8010_000c, "reader 1").unwrap_err();
        assert_eq!(gone.to_string(), "no card in reader 1");
    }
}
