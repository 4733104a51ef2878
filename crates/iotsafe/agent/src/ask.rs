// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is asked of a running agent; a token also of a card without one.

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warifu_agent::card::{Caller, not_logged_in};
use warifu_agent::config::CardConfig;
use warifu_agent::jwt::Jwts;
use warifu_agent::metrics::Metrics;
use warifu_agent::rights::Rights;
use warifu_agent_protocol::message::{Answer, Call, JwtRequest};
use warifu_agent_protocol::{Address, AgentClient, AgentToken, default_socket};
use warifu_iotsafe_client::{CardAddress, PinState, Token, TokenError};

use crate::{Failure, TokenArgs, Where, start};

/// How long the agent may take to say what it knows without a card.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn status(place: &Where) -> Result<(), Failure> {
    print_text(ask(place, Call::Status)?)
}

pub(crate) fn metrics(place: &Where) -> Result<(), Failure> {
    print_text(ask(place, Call::Metrics)?)
}

pub(crate) fn stop(place: &Where) -> Result<(), Failure> {
    ask(place, Call::Stop).map(drop)
}

pub(crate) fn token(args: &TokenArgs) -> Result<(), Failure> {
    let variable = env::var("WARIFU_CARD").ok().filter(|card| !card.is_empty());
    let (card, origin) = match (&args.card, variable) {
        (Some(card), _) => (card.clone(), "--card"),
        (None, Some(card)) => (card, "WARIFU_CARD"),
        (None, None) => ("agent".to_owned(), "--card"),
    };
    let address: Address =
        card.parse().map_err(|error| Failure::usage(format!("{origin}: {error}")))?;
    let request = request(args)?;
    let deadline = Instant::now() + Duration::from_secs(args.timeout.into());
    let token = match address {
        Address::Agent { socket, card } => {
            let path = socket.unwrap_or_else(default_socket);
            let mut client = AgentClient::new(&path, card.as_deref());
            match client.ask(Call::Jwt(request), deadline) {
                Ok(Answer::Jwt { token, .. }) => token,
                Ok(_) => return Err(Failure::environment("the agent gave no token: restart it")),
                Err(TokenError::PinNeeded) => {
                    let state = AgentToken::new(client).pin_state(deadline);
                    return Err(pin_needed(state, "end the agent, start it with --pin ask"));
                }
                Err(error) => return Err(failure(error)),
            }
        }
        Address::Card(address) => directly(args, address, &request, deadline)?,
    };
    println!("{token}");
    Ok(())
}

/// From a card without an agent: a session for this one token.
fn directly(
    args: &TokenArgs,
    address: CardAddress,
    request: &JwtRequest,
    deadline: Instant,
) -> Result<String, Failure> {
    let mut card = CardConfig::at(address, "card");
    if let Some(source) = &args.pin {
        card.pin = Some(source.parse().map_err(|error| Failure::usage(format!("--{error}")))?);
    }
    let holder = start::holder(&card, &Arc::new(Metrics::default()))?;
    let rights = Rights::all(rustix::process::getuid().as_raw());
    let result = Jwts::default().get(&holder, &Caller::AGENT, &rights, request, deadline);
    let result = result.map_err(|error| match error {
        TokenError::PinNeeded => {
            pin_needed(holder.pin_state(&Caller::AGENT, deadline), "use --pin ask")
        }
        error => failure(error),
    });
    // Also after a deadline that has run out: a channel behind a modem stays open else.
    holder.close(Instant::now() + start::CLOSING);
    Ok(result?.0)
}

fn request(args: &TokenArgs) -> Result<JwtRequest, Failure> {
    let mut request = JwtRequest {
        key: args.key.clone(),
        audience: args.audience.clone(),
        issuer: args.issuer.clone(),
        subject: args.subject.clone(),
        key_id: args.key_id.clone(),
        lifetime_s: args.lifetime,
        ..JwtRequest::default()
    };
    for claim in &args.claim {
        let (name, value) =
            claim.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                Failure::usage(format!("--claim is \"{claim}\": expected NAME=VALUE"))
            })?;
        let json = serde_json::from_str::<serde_json::Value>(value);
        let json = json.unwrap_or_else(|_| serde_json::Value::from(value));
        request.claims.insert(name.to_owned(), json.to_string());
    }
    Ok(request)
}

fn ask(place: &Where, call: Call) -> Result<Answer, Failure> {
    let path = place.socket.clone().unwrap_or_else(default_socket);
    AgentClient::new(&path, None).ask(call, Instant::now() + PATIENCE).map_err(failure)
}

fn print_text(answer: Answer) -> Result<(), Failure> {
    match answer {
        Answer::Text(text) => {
            println!("{}", text.trim_end());
            Ok(())
        }
        _ => Err(Failure::environment("the agent answered something else: restart it")),
    }
}

/// The card wants its PIN: `mend` says how it gets one, unless it takes none any more.
fn pin_needed(state: Result<PinState, TokenError>, mend: &str) -> Failure {
    if state == Ok(PinState::Locked) {
        return Failure::usage(not_logged_in(&TokenError::PinLocked));
    }
    let left = match state {
        Ok(PinState::Wanted(Some(1))) => " (1 try left)".to_owned(),
        Ok(PinState::Wanted(Some(tries))) => format!(" ({tries} tries left)"),
        _ => String::new(),
    };
    Failure::usage(format!("the card wants its PIN first{left}: {mend}"))
}

fn failure(error: TokenError) -> Failure {
    match error {
        TokenError::Denied(text) => Failure::usage(text),
        error => Failure::environment(error),
    }
}
