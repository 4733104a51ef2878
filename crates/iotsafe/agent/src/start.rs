// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `start`: holds cards until a signal or a caller ends the agent.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warifu_agent::LOG;
use warifu_agent::card::{Holder, Login};
use warifu_agent::config::{CardConfig, Config, card_address};
use warifu_agent::metrics::Metrics;
use warifu_agent::server::{Agent, Socket};
use warifu_agent_protocol::{default_socket, runtime_folder_hint};
use warifu_iotsafe_client::{CardAddress, CardToken};
use warifu_os::SystemClock;

use crate::{Failure, StartArgs};

/// The timeout for closing a card at the end.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn start(args: &StartArgs) -> Result<(), Failure> {
    let config = configuration(args)?;
    let path = config.socket.clone().unwrap_or_else(default_socket);
    // Programs may run in other folders.
    let path = std::path::absolute(&path).map_err(Failure::environment)?;
    let own = rustix::process::getuid().as_raw();
    Socket::check(&path).map_err(|error| {
        let hint = if config.socket.is_none() { runtime_folder_hint() } else { "" };
        Failure::environment(format!("{error}{hint}"))
    })?;
    let for_others = config.callers.iter().any(|rights| rights.uid != own);
    let metrics = Arc::new(Metrics::default());
    let holders = config.cards.iter().map(|card| holder(card, &metrics));
    let holders = holders.collect::<Result<Vec<Holder>, Failure>>()?;

    let (ends, ended) = mpsc::channel();
    let signalled = ends.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::environment)?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let _ = signalled.send(()); // without a receiver the agent is ending already
        }
    });
    if args.with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
            .map_err(Failure::environment)?;
    }
    let stop = Box::new(move || {
        let _ = ends.send(()); // without a receiver the agent is ending already
    });
    let clock = Arc::new(SystemClock);
    let socket = Socket::open(&path, for_others).map_err(Failure::environment)?;
    let agent = Agent::new(holders, config.callers.clone(), Arc::clone(&metrics), clock, stop);
    if let Some(address) = &config.metrics {
        let found = warifu_agent::http::serve(address, &metrics).map_err(Failure::environment)?;
        LOG.line(format_args!("metrics at http://{found}/metrics"));
    }
    agent.work_ahead();
    socket.start(&agent).map_err(Failure::environment)?;
    LOG.line(format_args!("export WARIFU_CARD=agent:{}", path.display()));
    let _ = ended.recv(); // the sender lives in the agent
    drop(socket);
    for card in agent.cards() {
        card.holder.close(Instant::now() + CLOSE_TIMEOUT);
    }
    Ok(())
}

/// The configuration file, overridden by the command line.
fn configuration(args: &StartArgs) -> Result<Config, Failure> {
    let mut config = match &args.config {
        None => Config::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            Config::parse(&text, &path.display().to_string()).map_err(Failure::usage)?
        }
    };
    for text in &args.card {
        let address =
            card_address(text).map_err(|error| Failure::usage(format!("--card: {error}")))?;
        let at = config.cards.len();
        let name = if at == 0 { "card".to_owned() } else { format!("card{at}") };
        config.cards.push(CardConfig::at(address, &name));
    }
    if config.cards.is_empty() {
        let folder = std::env::var("XDG_RUNTIME_DIR").unwrap_or_else(|_| "/run".to_owned());
        let path = Path::new(&folder).join("warifu/card.sock");
        config.cards.push(CardConfig::at(CardAddress::Unix(path), "card"));
    }
    if let Some(source) = &args.pin {
        let source = source.parse().map_err(|error| Failure::usage(format!("--{error}")))?;
        config.cards[0].pin = Some(source);
    }
    if args.agent.socket.is_some() {
        config.socket.clone_from(&args.agent.socket);
    }
    if args.metrics.is_some() {
        config.metrics.clone_from(&args.metrics);
    }
    Ok(config)
}

/// Holds a card; asks for its PIN.
pub(crate) fn holder(card: &CardConfig, metrics: &Arc<Metrics>) -> Result<Holder, Failure> {
    let name = &card.settings.name;
    let pin = card.pin.as_ref().map(|source| source.get(name)).transpose();
    let pin = pin.map_err(Failure::usage)?;
    let token = CardToken::new(card.address.transport(None), card.options.clone());
    let seed = getrandom::u64().map_err(Failure::environment)?;
    let login = Login::new(pin, card.pin_lifetime);
    let (settings, clock) = (card.settings.clone(), Arc::new(SystemClock));
    Ok(Holder::new(token, login, settings, clock, Arc::clone(metrics), seed))
}
