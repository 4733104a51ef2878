// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libcoap's context and session, owned.

use std::ffi::CStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Once;

use warifu_model::CoapMessageType;

use crate::config::Config;
use crate::error::Error;
use crate::ffi::{
    self, CoapAddress, CoapContext, CoapFixedPoint, CoapPdu, CoapSession, CoapSocketAddress,
};
use crate::record;

/// libcoap's own name and version: `libcoap 4.3.1`.
pub fn version() -> String {
    // SAFETY: the function returns a constant text.
    unsafe { CStr::from_ptr(ffi::coap_package_version()) }.to_string_lossy().into_owned()
}

/// A context with one session at most. All calls of one context come from one thread.
pub(crate) struct Context {
    context: NonNull<CoapContext>,
    session: Option<NonNull<CoapSession>>,
}

impl Context {
    pub(crate) fn new() -> Result<Context, Error> {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            // SAFETY: called once, before any context is made. Without messages on standard error,
            // which a trial that fails on purpose would fill.
            unsafe {
                ffi::coap_startup();
                ffi::coap_set_log_level(ffi::LOG_EMERG);
                ffi::coap_set_prng(record::random);
            }
        });
        // SAFETY: a context without an endpoint to listen on.
        let made = unsafe { ffi::coap_new_context(ptr::null()) };
        let context = NonNull::new(made).ok_or(Error::Libcoap(
            "no context can be made; more than this needs `ulimit -n` raised",
        ))?;
        let context = Context { context, session: None };
        record::register(context.context.as_ptr());
        // As `coap-client` does.
        let mode = ffi::COAP_BLOCK_USE_LIBCOAP | ffi::COAP_BLOCK_SINGLE_BODY;
        // SAFETY: the context is alive.
        let descriptor = unsafe {
            ffi::coap_context_set_block_mode(context.context.as_ptr(), mode);
            ffi::coap_context_get_coap_fd(context.context.as_ptr())
        };
        if descriptor < 0 {
            return Err(Error::Libcoap("it was built without epoll; Debian's is built with it"));
        }
        Ok(context)
    }

    /// Makes the session, and with it a connected UDP socket, and sends the request.
    pub(crate) fn request(&mut self, config: &Config, token: &[u8]) -> Result<(), String> {
        let server = address(config.address);
        // SAFETY: the context is alive, and `server` outlives the call, which copies it.
        let session = unsafe {
            ffi::coap_new_client_session(
                self.context.as_ptr(),
                ptr::null(),
                &raw const server,
                ffi::COAP_PROTO_UDP,
            )
        };
        let session = NonNull::new(session).ok_or_else(|| failed("make a session"))?;
        self.session = Some(session);
        // SAFETY: the session is alive.
        unsafe {
            let session = session.as_ptr();
            let stack = &config.stack;
            let timeout = thousandths((stack.ack_timeout.0 / 1_000_000) as u32);
            ffi::coap_session_set_ack_timeout(session, timeout);
            let factor = thousandths(u32::from(stack.ack_random_factor_percent) * 10);
            ffi::coap_session_set_ack_random_factor(session, factor);
            ffi::coap_session_set_max_retransmit(session, stack.max_retransmit.into());
        }
        let pdu = pdu(session, config, token)?;
        // SAFETY: the session is alive; the PDU is handed over.
        let message_id = unsafe { ffi::coap_send(session.as_ptr(), pdu.as_ptr()) };
        if message_id == ffi::COAP_INVALID_MID {
            return Err(failed("send the request"));
        }
        Ok(())
    }

    /// Reads what has come, and sends what is due. Does not wait.
    pub(crate) fn process(&mut self) {
        // SAFETY: the context is alive.
        unsafe { ffi::coap_io_process(self.context.as_ptr(), ffi::COAP_IO_NO_WAIT) };
    }

    /// The session's own port; 0 without a session.
    pub(crate) fn port(&self) -> u16 {
        self.session.map_or(0, |session| {
            // SAFETY: the session is alive, and the address is its own.
            unsafe {
                let address = ffi::coap_session_get_addr_local(session.as_ptr());
                if address.is_null() { 0 } else { ffi::coap_address_get_port(address) }
            }
        })
    }
}

impl AsFd for Context {
    /// An epoll descriptor, readable when `process` has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor was checked in `new`, and lives as long as the context.
        unsafe {
            let descriptor = ffi::coap_context_get_coap_fd(self.context.as_ptr());
            BorrowedFd::borrow_raw(descriptor)
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: both are alive and used by nobody afterwards.
        unsafe {
            if let Some(session) = self.session.take() {
                ffi::coap_session_release(session.as_ptr());
            }
            ffi::coap_free_context(self.context.as_ptr());
        }
    }
}

fn pdu(
    session: NonNull<CoapSession>,
    config: &Config,
    token: &[u8],
) -> Result<NonNull<CoapPdu>, String> {
    let message_type = match config.stack.message_type {
        CoapMessageType::Confirmable => ffi::COAP_MESSAGE_CON,
        CoapMessageType::NonConfirmable => ffi::COAP_MESSAGE_NON,
    };
    let code = match config.request_body {
        0 => ffi::COAP_REQUEST_CODE_GET,
        _ => ffi::COAP_REQUEST_CODE_PUT,
    };
    let body = vec![b'u'; config.request_body.into()];
    // SAFETY: the session is alive.
    let made = unsafe { ffi::coap_new_pdu(message_type, code, session.as_ptr()) };
    let pdu = NonNull::new(made).ok_or_else(|| failed("make a request"))?;
    let path = config.uri_path().map(|segment| (ffi::COAP_OPTION_URI_PATH, segment));
    let query = config.uri_query().map(|parameter| (ffi::COAP_OPTION_URI_QUERY, parameter));
    // SAFETY: the PDU is alive, and each call copies its bytes. Options come in ascending order, as
    // coap_add_option wants them.
    let whole = unsafe {
        ffi::coap_add_token(pdu.as_ptr(), token.len(), token.as_ptr()) == 1
            && path.chain(query).all(|(number, text)| {
                ffi::coap_add_option(pdu.as_ptr(), number, text.len(), text.as_ptr()) > 0
            })
            && (body.is_empty() || ffi::coap_add_data(pdu.as_ptr(), body.len(), body.as_ptr()) == 1)
    };
    if !whole {
        // SAFETY: the PDU is ours until it is sent.
        unsafe { ffi::coap_delete_pdu(pdu.as_ptr()) };
        return Err(failed("add the token, the options and the body"));
    }
    Ok(pdu)
}

/// What libcoap could not do; the system's last words are mostly why.
fn failed(what: &str) -> String {
    format!("libcoap failed to {what}: {}", io::Error::last_os_error())
}

/// Thousandths as libcoap takes them.
fn thousandths(value: u32) -> CoapFixedPoint {
    CoapFixedPoint {
        integer_part: u16::try_from(value / 1_000).unwrap_or(u16::MAX),
        fractional_part: (value % 1_000) as u16,
    }
}

fn address(from: SocketAddr) -> CoapAddress {
    match from {
        SocketAddr::V4(from) => {
            let sin = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: from.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(from.ip().octets()) },
                sin_zero: [0; 8],
            };
            let size = size_of_val(&sin) as libc::socklen_t;
            CoapAddress { size, addr: CoapSocketAddress { sin } }
        }
        SocketAddr::V6(from) => {
            let sin6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: from.port().to_be(),
                sin6_flowinfo: from.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: from.ip().octets() },
                sin6_scope_id: from.scope_id(),
            };
            let size = size_of_val(&sin6) as libc::socklen_t;
            CoapAddress { size, addr: CoapSocketAddress { sin6 } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_of_rfc_7252_defaults() {
        let parts = |value| {
            let CoapFixedPoint { integer_part, fractional_part } = thousandths(value);
            (integer_part, fractional_part)
        };
        assert_eq!((parts(2_000), parts(1_500)), ((2, 0), (1, 500)));
    }

    #[test]
    fn ports_of_addresses() {
        for text in ["127.0.0.1:5683", "[::1]:5684"] {
            let from: SocketAddr = text.parse().unwrap();
            let to = address(from);
            // SAFETY: the address is whole.
            assert_eq!(unsafe { ffi::coap_address_get_port(&raw const to) }, from.port());
        }
    }

    #[test]
    fn version_names_libcoap() {
        assert!(version().starts_with("libcoap 4."), "{}", version());
    }
}
