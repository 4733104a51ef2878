// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The few functions of libcoap 3 (API level 4.3) that a client over UDP needs, declared by hand
//! from /usr/include/coap3, and what it calls back.
//!
//! No structure of libcoap's is looked into but the two that its functions are given.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `coap_context_t`.
#[repr(C)]
pub(crate) struct CoapContext {
    _private: [u8; 0],
}

/// `coap_session_t`.
#[repr(C)]
pub(crate) struct CoapSession {
    _private: [u8; 0],
}

/// `coap_pdu_t`.
#[repr(C)]
pub(crate) struct CoapPdu {
    _private: [u8; 0],
}

/// `coap_address_t` of coap_address.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CoapAddress {
    pub size: libc::socklen_t,
    pub addr: CoapSocketAddress,
}

/// The union in `coap_address_t`. Its alignment is that of sockaddr_in6: libcoap expects it right
/// behind `size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union CoapSocketAddress {
    pub sin: libc::sockaddr_in,
    pub sin6: libc::sockaddr_in6,
}

/// `coap_fixed_point_t` of coap_session.h: thousandths are the fraction.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoapFixedPoint {
    pub integer_part: u16,
    pub fractional_part: u16,
}

/// `coap_response_handler_t`: returns a `coap_response_t`.
pub(crate) type ResponseHandler =
    extern "C" fn(*mut CoapSession, *const CoapPdu, *const CoapPdu, c_int) -> c_int;
/// `coap_nack_handler_t`: the third argument is a `coap_nack_reason_t`.
pub(crate) type NackHandler = extern "C" fn(*mut CoapSession, *const CoapPdu, c_int, c_int);
/// `coap_rand_func_t`: 1 for success.
pub(crate) type RandomFunction = extern "C" fn(*mut c_void, usize) -> c_int;

/// `coap_pdu_type_t`.
pub(crate) const COAP_MESSAGE_CON: c_int = 0;
pub(crate) const COAP_MESSAGE_NON: c_int = 1;
pub(crate) const COAP_MESSAGE_ACK: u8 = 2;
pub(crate) const COAP_MESSAGE_RST: u8 = 3;
/// `coap_pdu_code_t`.
pub(crate) const COAP_REQUEST_CODE_GET: c_int = 1;
pub(crate) const COAP_REQUEST_CODE_PUT: c_int = 3;
/// 2.04 Changed.
pub(crate) const COAP_RESPONSE_CODE_CHANGED: c_int = 2 << 5 | 4;
/// 2.05 Content.
pub(crate) const COAP_RESPONSE_CODE_CONTENT: c_int = 2 << 5 | 5;
/// `coap_proto_t`.
pub(crate) const COAP_PROTO_UDP: c_int = 1;
/// coap_option.h.
pub(crate) const COAP_OPTION_URI_PATH: u16 = 11;
pub(crate) const COAP_OPTION_URI_QUERY: u16 = 15;
/// `coap_nack_reason_t` of coap_io.h.
pub(crate) const COAP_NACK_TOO_MANY_RETRIES: c_int = 0;
pub(crate) const COAP_NACK_NOT_DELIVERABLE: c_int = 1;
pub(crate) const COAP_NACK_RST: c_int = 2;
/// `coap_response_t` of net.h.
pub(crate) const COAP_RESPONSE_OK: c_int = 1;
/// block.h: libcoap fetches all blocks, and gives the body in one piece.
pub(crate) const COAP_BLOCK_USE_LIBCOAP: u8 = 1;
pub(crate) const COAP_BLOCK_SINGLE_BODY: u8 = 2;
/// net.h.
pub(crate) const COAP_IO_NO_WAIT: u32 = u32::MAX;
/// net.h: what a send returns that failed.
pub(crate) const COAP_INVALID_MID: c_int = -1;
/// coap_debug.h: nothing but what ends the system.
pub(crate) const LOG_EMERG: c_int = 0;

// Debian builds libcoap once for each TLS library. Without one it has no other library to load,
// and plain CoAP needs none.
#[link(name = "coap-3-notls")]
unsafe extern "C" {
    pub(crate) fn coap_startup();
    pub(crate) fn coap_package_version() -> *const c_char;
    pub(crate) fn coap_set_log_level(level: c_int);
    pub(crate) fn coap_set_prng(random: RandomFunction);

    pub(crate) fn coap_new_context(listen: *const CoapAddress) -> *mut CoapContext;
    pub(crate) fn coap_free_context(context: *mut CoapContext);
    pub(crate) fn coap_context_set_block_mode(context: *mut CoapContext, mode: u8);
    pub(crate) fn coap_context_get_coap_fd(context: *const CoapContext) -> c_int;
    pub(crate) fn coap_register_response_handler(
        context: *mut CoapContext,
        handler: ResponseHandler,
    );
    pub(crate) fn coap_register_nack_handler(context: *mut CoapContext, handler: NackHandler);
    pub(crate) fn coap_io_process(context: *mut CoapContext, timeout_ms: u32) -> c_int;

    pub(crate) fn coap_new_client_session(
        context: *mut CoapContext,
        local: *const CoapAddress,
        server: *const CoapAddress,
        protocol: c_int,
    ) -> *mut CoapSession;
    pub(crate) fn coap_session_release(session: *mut CoapSession);
    pub(crate) fn coap_session_get_addr_local(session: *const CoapSession) -> *const CoapAddress;
    pub(crate) fn coap_address_get_port(address: *const CoapAddress) -> u16;
    pub(crate) fn coap_session_set_ack_timeout(session: *mut CoapSession, value: CoapFixedPoint);
    pub(crate) fn coap_session_set_ack_random_factor(
        session: *mut CoapSession,
        value: CoapFixedPoint,
    );
    pub(crate) fn coap_session_set_max_retransmit(session: *mut CoapSession, value: u16);

    pub(crate) fn coap_new_pdu(
        message_type: c_int,
        code: c_int,
        session: *mut CoapSession,
    ) -> *mut CoapPdu;
    pub(crate) fn coap_delete_pdu(pdu: *mut CoapPdu);
    pub(crate) fn coap_add_token(pdu: *mut CoapPdu, length: usize, data: *const u8) -> c_int;
    pub(crate) fn coap_add_option(
        pdu: *mut CoapPdu,
        number: u16,
        length: usize,
        data: *const u8,
    ) -> usize;
    pub(crate) fn coap_add_data(pdu: *mut CoapPdu, length: usize, data: *const u8) -> c_int;
    /// Takes the PDU, whatever it returns.
    pub(crate) fn coap_send(session: *mut CoapSession, pdu: *mut CoapPdu) -> c_int;
    pub(crate) fn coap_pdu_get_code(pdu: *const CoapPdu) -> c_uint;
    pub(crate) fn coap_get_data_large(
        pdu: *const CoapPdu,
        length: *mut usize,
        data: *mut *const u8,
        offset: *mut usize,
        total: *mut usize,
    ) -> c_int;
}
