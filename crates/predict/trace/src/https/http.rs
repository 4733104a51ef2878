// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP/1.1: the request as the device sends it, and nginx's answer.

use warifu_model::{LONGEST_BODY, Pattern, Session, Tls};

use crate::error::TraceError;

/// The host that is asked where the stack names no server.
pub const DEFAULT_HOST: &str = "warifu.test";
/// The longest request line that nginx takes: `large_client_header_buffers 4 8k`, its default.
const REQUEST_LINE: usize = 8_192;
/// A larger body says nothing more about establishing a connection.
const RESPONSE_BODY: u32 = 64 << 20;

/// The head of the request (RFC 9112 section 2.1); a POST's body follows it in the same call.
pub fn request_text(tls: &Tls, pattern: &Pattern) -> String {
    let host = tls.server_name.as_deref().unwrap_or(DEFAULT_HOST);
    let connection = match closes(tls) {
        true => "Connection: close\r\n",
        false => "",
    };
    let body = match pattern.request_body {
        0 => String::new(),
        bytes => format!("Content-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n"),
    };
    let (method, path) = (method(pattern), &pattern.path);
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{body}{connection}\r\n")
}

/// What is asked of the server: a body makes it a POST (RFC 9110 section 9.3.3).
pub(crate) fn method(pattern: &Pattern) -> &'static str {
    if pattern.request_body > 0 { "POST" } else { "GET" }
}

/// The head of nginx's response to [`request_text`], with a date that stands for any other:
/// an IMF-fixdate always has 29 bytes (RFC 9110 section 5.6.7).
///
/// It is that of a static file under `server_tokens off; etag off; types { } default_type
/// application/octet-stream;` (`ngx_http_header_filter` and `ngx_http_static_handler` of
/// nginx 1.22). A POST is answered with the same file, once its body has been read.
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

/// Length of the request with its body, B.
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
    let line = method(pattern).len() + "  HTTP/1.1\r\n".len() + path.len();
    if line > REQUEST_LINE {
        return Err(TraceError::new(
            "pattern.path",
            format!("makes a request line of {line} B: nginx takes {REQUEST_LINE} B at most"),
        ));
    }
    if pattern.request_body > LONGEST_BODY {
        return Err(TraceError::new(
            "pattern.request_body",
            format!("is {} B: expected at most {LONGEST_BODY} B", pattern.request_body),
        ));
    }
    // The head is below 64 KiB.
    Ok(request_text(tls, pattern).len() as u32 + pattern.request_body)
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
