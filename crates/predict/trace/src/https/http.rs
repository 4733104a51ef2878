// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP/1.1: the request as the device sends it, and nginx's answer.

use warifu_model::{Pattern, Session, Tls};

use crate::error::TraceError;

/// The host that is asked where the stack names no server.
pub const DEFAULT_HOST: &str = "warifu.test";
/// The longest request line that nginx takes: `large_client_header_buffers 4 8k`, its default.
const REQUEST_LINE: usize = 8_192;
/// A larger body says nothing more about establishing a connection.
const RESPONSE_BODY: u32 = 64 << 20;

/// The bytes of the request (RFC 9112 section 2.1), written by one call.
pub fn request_text(tls: &Tls, pattern: &Pattern) -> String {
    let host = tls.server_name.as_deref().unwrap_or(DEFAULT_HOST);
    let connection = match closes(tls) {
        true => "Connection: close\r\n",
        false => "",
    };
    format!("GET {} HTTP/1.1\r\nHost: {host}\r\n{connection}\r\n", pattern.path)
}

/// The head of nginx's response to [`request_text`], with a date that stands for any other:
/// an IMF-fixdate always has 29 bytes (RFC 9110 section 5.6.7).
///
/// It is that of a static file under `server_tokens off; etag off; types { } default_type
/// application/octet-stream;` (`ngx_http_header_filter` and `ngx_http_static_handler` of
/// nginx 1.22).
pub fn response_head(tls: &Tls, pattern: &Pattern) -> String {
    let date = "Thu, 01 Jan 1970 00:00:00 GMT";
    let connection = if closes(tls) { "close" } else { "keep-alive" };
    format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: {date}\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\
         Last-Modified: {date}\r\nConnection: {connection}\r\nAccept-Ranges: bytes\r\n\r\n",
        pattern.response_body
    )
}

/// Whether the server is asked to close after its response. Not with early data: nginx then
/// closes before it has read the client's Finished, and the reset that the Finished provokes
/// can destroy a response that is still on its way (nginx 1.22.1, by strace).
pub(crate) fn closes(tls: &Tls) -> bool {
    tls.session != Session::EarlyData
}

/// Length of the request, B.
pub(crate) fn request_bytes(tls: &Tls, pattern: &Pattern) -> Result<u32, TraceError> {
    let path = &pattern.path;
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TraceError::new(
            "pattern.path",
            format!(
                "is {path:?}: expected a path that begins with / and holds no spaces, for example \
                 \"/\""
            ),
        ));
    }
    let line = "GET  HTTP/1.1\r\n".len() + path.len();
    if line > REQUEST_LINE {
        return Err(TraceError::new(
            "pattern.path",
            format!("makes a request line of {line} B: nginx takes {REQUEST_LINE} B at most"),
        ));
    }
    // Both parts are below 64 KiB.
    Ok(request_text(tls, pattern).len() as u32)
}

/// Length of the response with its head, B.
pub(crate) fn response_bytes(tls: &Tls, pattern: &Pattern) -> Result<u32, TraceError> {
    if pattern.response_body > RESPONSE_BODY {
        return Err(TraceError::new(
            "pattern.response_body",
            format!("is {} B: expected at most {RESPONSE_BODY} B", pattern.response_body),
        ));
    }
    Ok(response_head(tls, pattern).len() as u32 + pattern.response_body)
}
