// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any bytes behind a frame's length are a request and a reply of the agent's, or neither. What is
//! one is the same after it was sent again.

use warifu_agent_protocol::message::{Call, Reply, Request, decode, encode};

/// Checks one input.
pub fn check(bytes: &[u8]) {
    if let Some(request) = decode::<Request>(bytes) {
        if let Call::Sign { input, .. } | Call::Verify { input, .. } = &request.call {
            let _ = input.as_sign_input();
        }
        let frame = encode(&request).expect("a request that was not too long");
        assert_eq!(decode::<Request>(&frame[4..]), Some(request));
    }
    if let Some(reply) = decode::<Reply>(bytes) {
        if let Err(error) = &reply.answer {
            let _ = error.to_string();
        }
        let frame = encode(&reply).expect("a reply that was not too long");
        assert_eq!(decode::<Reply>(&frame[4..]), Some(reply));
    }
}
