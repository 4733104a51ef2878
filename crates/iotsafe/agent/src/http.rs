// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metrics over HTTP, for Prometheus to fetch. Whoever reaches the port may connect, so a request
//! has limits of size and time, and connections a limit of number: a caller that sends nothing, or
//! a header without end, takes no memory and no place from the others for long.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::AbortHandle;

use crate::LOG;
use crate::metrics::Metrics;

/// The media type of OpenMetrics.
const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The most bytes of a request; hyper's least.
const REQUEST_MAX_BYTES: usize = 8192;
/// The most header lines of a request.
const HEADERS_MAX: usize = 32;
/// The most connections at a time; a further one ends the oldest, which has had the most time.
const CONNECTIONS_MAX: usize = 64;
/// How long a request may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a connection may last, for slow readers.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a failed accept, perhaps for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `/metrics` until the process ends; returns the address with its actual port.
///
/// # Errors
/// One line.
pub fn serve(address: &str, metrics: &Arc<Metrics>) -> Result<String, String> {
    let failed =
        |error: io::Error| format!("metrics at {address}: {error}: choose another address:port");
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
    let found = listener.local_addr().map_err(failed)?.to_string();
    let metrics = Arc::clone(metrics);
    let thread = thread::Builder::new().name("metrics".to_owned());
    thread.spawn(move || runtime.block_on(accept(listener, metrics))).map_err(failed)?;
    Ok(found)
}

/// Takes connections, for ever: a failed accept is reported once until one succeeds.
async fn accept(listener: TcpListener, metrics: Arc<Metrics>) {
    let mut connections = VecDeque::<AbortHandle>::new();
    let mut reported = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                reported = false;
                connections.retain(|connection| !connection.is_finished());
                while connections.len() >= CONNECTIONS_MAX {
                    connections.pop_front().iter().for_each(AbortHandle::abort);
                }
                let task = tokio::spawn(connection(stream, Arc::clone(&metrics)));
                connections.push_back(task.abort_handle());
            }
            Err(error) => {
                if !std::mem::replace(&mut reported, true) {
                    LOG.line(format_args!("accepting a connection for metrics failed: {error}"));
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, metrics: Arc<Metrics>) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &metrics);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(REQUEST_MAX_BYTES)
        .max_headers(HEADERS_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    // The client may have disconnected, or sent nothing that is HTTP.
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, served).await;
}

fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<Full<Bytes>> {
    let with = |status, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != "/metrics" {
        return with(StatusCode::NOT_FOUND, "see /metrics\n".to_owned());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = with(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut response = with(StatusCode::OK, metrics.text());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}
