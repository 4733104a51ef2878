// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands that ask a running agent. `token` also works with a card and no agent.

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warifu_agent::card::{Caller, not_logged_in};
use warifu_agent::config::CardConfig;
use warifu_agent::jwt::Jwts;
use warifu_agent::metrics::Metrics;
use warifu_agent::rights::Rights;
use warifu_agent_protocol::message::{Answer, Call, JwtRequest};
use warifu_agent_protocol::{
    Address, AgentClient, AgentToken, default_socket, runtime_folder_hint,
};
use warifu_iotsafe_client::{CardAddress, PinState, Token, TokenError};

use crate::{AgentSocket, Failure, TokenArgs, start};

/// The timeout of requests that need no card.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn status(agent: &AgentSocket) -> Result<(), Failure> {
    print_text(request(agent, Call::Status)?)
}

pub(crate) fn metrics(agent: &AgentSocket) -> Result<(), Failure> {
    print_text(request(agent, Call::Metrics)?)
}

pub(crate) fn stop(agent: &AgentSocket) -> Result<(), Failure> {
    request(agent, Call::Stop).map(drop)
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
    let request = jwt_request(args)?;
    let deadline = Instant::now() + Duration::from_secs(args.timeout.into());
    let token = match address {
        Address::Agent { socket, card } => {
            let path = socket.unwrap_or_else(default_socket);
            let mut client = AgentClient::new(&path, card.as_deref());
            match client.call(Call::Jwt(request), deadline) {
                Ok(Answer::Jwt { token, .. }) => token,
                Ok(_) => {
                    return Err(Failure::environment(
                        "unexpected answer from the agent: restart it",
                    ));
                }
                Err(TokenError::PinNeeded) => {
                    let state = AgentToken::new(client).pin_state(deadline);
                    return Err(pin_needed(state, "restart the agent with --pin ask"));
                }
                Err(error) => return Err(failure(error)),
            }
        }
        Address::Card(address) => token_from_card(args, address, &request, deadline)?,
    };
    println!("{token}");
    Ok(())
}

/// A token from a card without an agent, in a session of its own.
fn token_from_card(
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
    // Even after the deadline: behind a modem the channel would stay open.
    holder.close(Instant::now() + start::CLOSE_TIMEOUT);
    Ok(result?.0)
}

fn jwt_request(args: &TokenArgs) -> Result<JwtRequest, Failure> {
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

fn request(agent: &AgentSocket, call: Call) -> Result<Answer, Failure> {
    let path = agent.socket.clone().unwrap_or_else(default_socket);
    let answer = AgentClient::new(&path, None).call(call, Instant::now() + TIMEOUT);
    answer.map_err(|error| {
        let Failure(code, text) = failure(error);
        let hint = if agent.socket.is_none() { runtime_folder_hint() } else { "" };
        Failure(code, format!("{text}{hint}"))
    })
}

fn print_text(answer: Answer) -> Result<(), Failure> {
    match answer {
        Answer::Text(text) => {
            println!("{}", text.trim_end());
            Ok(())
        }
        _ => Err(Failure::environment("unexpected answer from the agent: restart it")),
    }
}

/// The card needs its PIN: `hint` says how to enter one, unless it is locked.
fn pin_needed(state: Result<PinState, TokenError>, hint: &str) -> Failure {
    if state == Ok(PinState::Locked) {
        return Failure::usage(not_logged_in(&TokenError::PinLocked));
    }
    let left = match state {
        Ok(PinState::Wanted(Some(1))) => " (1 try left)".to_owned(),
        Ok(PinState::Wanted(Some(tries))) => format!(" ({tries} tries left)"),
        _ => String::new(),
    };
    Failure::usage(format!("the card needs its PIN{left}: {hint}"))
}

fn failure(error: TokenError) -> Failure {
    match error {
        TokenError::Denied(text) => Failure::usage(text),
        error => Failure::environment(error),
    }
}
