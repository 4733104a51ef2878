// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metrics over HTTP, for Prometheus to fetch.

use std::sync::Arc;
use std::thread;

use tiny_http::{Header, Method, Response, Server};

use crate::metrics::Metrics;

/// The media type of OpenMetrics.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/metrics` until the process ends; returns the address with its actual port.
///
/// # Errors
/// One line.
pub fn serve(address: &str, metrics: &Arc<Metrics>) -> Result<String, String> {
    let server = Server::http(address)
        .map_err(|error| format!("metrics at {address}: {error}: choose another address:port"))?;
    let metrics = Arc::clone(metrics);
    let found = server.server_addr().to_string();
    thread::spawn(move || {
        for request in server.incoming_requests() {
            // The client may have disconnected.
            let _ = if request.method() == &Method::Get && request.url() == "/metrics" {
                let response = Response::from_string(metrics.text());
                let header = Header::from_bytes("Content-Type", CONTENT_TYPE);
                match header {
                    Ok(header) => request.respond(response.with_header(header)),
                    Err(()) => request.respond(response),
                }
            } else {
                request.respond(Response::from_string("see /metrics\n").with_status_code(404))
            };
        }
    });
    Ok(found)
}
