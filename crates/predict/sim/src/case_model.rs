// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case compiled for simulation: every profile looked up, every law ready to draw from.

use std::sync::atomic::{AtomicU64, Ordering};

use warifu_model::{
    Case, Catalog, Costs, Definition, Error, Evidence, Input, KeyStoreCall, KeyStoreProfile, Link,
    Mark, Metric, Nanos, Operation, Role, SystemCall, inputs_where,
};
use warifu_trace::{Episode, Scenario, Step, Trace, scenario};

use crate::carrier::CarrierModel;
use crate::clock::Jiffy;
use crate::cost::Sampler;
use crate::link::PathModel;
use crate::profiles;
use crate::program::{ChannelPlan, Op, Programs};
use crate::route::Heading;
use crate::speed::SpeedLaws;

/// Numbers models; 0 is none.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// TCP gives up after a quarter of an hour (`tcp_retries2`), CoAP within the twelve hours that a
/// study may choose.
const DAY: Nanos = Nanos::from_millis(24 * 3_600_000);

/// A case compiled for simulation.
#[derive(Clone, Debug)]
pub struct CaseModel {
    /// The ticks of device and server, if they differ, else one for both.
    pub(crate) jiffies: [Jiffy; 2],
    pub(crate) one_clock: bool,
    pub(crate) paths: [PathModel; 2],
    pub(crate) programs: Programs,
    /// A processor idle for longer works at its cold costs, ns.
    pub(crate) idle_threshold: [u64; 2],
    /// When each instance of the scenario begins, ns.
    pub(crate) begins: Vec<u64>,
    /// What has not ended by then counts as failed, ns.
    pub(crate) horizon: u64,
    /// The marks at which some metric of the case takes a counter.
    pub(crate) counted_at: [bool; Mark::COUNT],
    /// How many connections `client.loop` and `server.worker` serve at once.
    pub(crate) capacity: [u32; 2],
    pub(crate) throttle: Option<(u32, u64)>,
    pub(crate) sleep: Option<(u64, Sampler)>,
    /// Whether the streams of client, server, key store and lengths are drawn from at all.
    pub(crate) draws: [bool; 4],
    /// Whether a party that waits from the beginning on has cold caches: so do the ends of DDS,
    /// between whose samples there are pauses. Figures of other protocols were found without.
    pub(crate) rested: bool,
    /// Whether trials without loss may repeat one another, see [`crate::memo`].
    pub(crate) repeats: bool,
    /// Whether trials without loss may go the way of one another, see [`crate::tape`].
    pub(crate) goes_by_tape: bool,
    /// Its number among all models of this process.
    pub(crate) number: u64,
    /// By what all computing of a role in a connection is slower or quicker.
    pub(crate) speed: SpeedLaws,
    evidence: Evidence,
}

impl CaseModel {
    /// Compiles a case.
    ///
    /// # Errors
    /// The case makes no connection (see [`warifu_trace::scenario`]), or a profile lacks what
    /// it needs.
    pub fn compile(case: &Case, catalog: &Catalog) -> Result<CaseModel, Error> {
        let scenario = scenario(case).map_err(|error| Error::in_case(error.key, error.message))?;
        CaseModel::with_episodes(case, &scenario.episodes, catalog)
    }

    /// Compiles a case for [`Simulator::record`](crate::Simulator::record): its trials go as those
    /// of [`CaseModel::compile`], to the nanosecond, and are slower.
    ///
    /// # Errors
    /// As [`CaseModel::compile`].
    pub fn compile_to_record(case: &Case, catalog: &Catalog) -> Result<CaseModel, Error> {
        let scenario = scenario(case).map_err(|error| Error::in_case(error.key, error.message))?;
        CaseModel::of_episodes(case, &scenario.episodes, catalog, true)
    }

    /// Compiles a case with a trace of its own in the place of the case's protocol.
    ///
    /// # Errors
    /// As [`CaseModel::compile`].
    pub fn with_trace(case: &Case, trace: &Trace, catalog: &Catalog) -> Result<CaseModel, Error> {
        let scenario = Scenario::of_one(Vec::new(), trace.clone());
        CaseModel::with_episodes(case, &scenario.episodes, catalog)
    }

    /// Compiles a case with episodes of its own, one after the other, in the place of the case's
    /// scenario.
    ///
    /// # Errors
    /// As [`CaseModel::compile`].
    pub fn with_episodes(
        case: &Case,
        episodes: &[Episode],
        catalog: &Catalog,
    ) -> Result<CaseModel, Error> {
        CaseModel::of_episodes(case, episodes, catalog, false)
    }

    fn of_episodes(
        case: &Case,
        episodes: &[Episode],
        catalog: &Catalog,
        in_detail: bool,
    ) -> Result<CaseModel, Error> {
        if case.link.mtu < Link::LEAST_MTU {
            let least = Link::LEAST_MTU;
            let message = format!("is {}: expected at least {least} B", case.link.mtu);
            return Err(Error::in_case("link.mtu", message));
        }
        let [client, server] = profiles::ends(case, catalog)?;
        let interface = |device: Costs<'_>, role| {
            let operation = Operation::System(role, SystemCall::Interface);
            let cost = device.cost(operation, &case.stack, 0)?;
            Ok::<_, Error>(Sampler::new(&cost.law(false), cost.bytes_cost))
        };
        let interfaces = [interface(client, Role::Client)?, interface(server, Role::Server)?];
        let key_store = profiles::key_store(catalog, &case.key_store.profile)?;
        let programs = Programs::compile(case, episodes, catalog, in_detail)?;
        let paths = [
            PathModel::new(&case.link, Heading::Up, interfaces.clone()),
            PathModel::new(&case.link, Heading::Down, interfaces),
        ];
        let draws = [
            programs.draws(Role::Client),
            programs.draws(Role::Server),
            programs.calls.iter().any(|call| call.as_constant().is_none())
                || key_store.sleep.is_some(),
            !programs.varying.is_empty(),
        ];
        let begins = vec![0; case.pattern.concurrent.max(1) as usize];
        let jiffies = jiffies(&programs);
        let speed = SpeedLaws::of([client, server]);
        let alone = begins.len() == 1 && programs.episodes == 1;
        let repeats = alone
            && !speed.vary()
            && !draws[..3].contains(&true)
            && paths.iter().all(PathModel::repeats);
        let over_tcp = |plan: &ChannelPlan| matches!(plan.carrier, CarrierModel::Tcp(_));
        let tells = paths.iter().all(PathModel::goes_by_tape)
            && programs.parties.len() == 2
            && programs.channels.iter().all(over_tcp);
        Ok(CaseModel {
            horizon: horizon(&begins, &programs),
            rested: case.stack.dds().is_some(),
            repeats,
            goes_by_tape: alone && !repeats && !in_detail && tells,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            one_clock: jiffies[0].ns == jiffies[1].ns,
            jiffies,
            counted_at: counted_at(case),
            paths,
            idle_threshold: [client, server].map(|of| of.device().idle_threshold.0),
            begins,
            capacity: [1, case.server.workers.max(1)],
            throttle: throttle(key_store),
            sleep: sleep(key_store),
            draws,
            evidence: evidence(case, episodes, catalog)?,
            speed,
            programs,
        })
    }

    /// What its prediction rests on: the evidence of its weakest input.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// Whether figures of its devices have bands, so that boards differ.
    pub fn has_bands(&self) -> bool {
        !self.programs.bands.is_empty()
    }

    /// How many connections a trial has: every episode of every instance.
    pub fn connections(&self) -> usize {
        self.begins.len() * self.programs.episodes as usize
    }

    /// The same with as many instances of the scenario as there are times, each beginning at its
    /// own.
    pub fn with_begins(mut self, begins: &[Nanos]) -> CaseModel {
        self.begins = begins.iter().map(|time| time.0).collect();
        self.repeats = false;
        self.goes_by_tape = false;
        self.horizon = horizon(&self.begins, &self.programs);
        self.number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// The same for [`Simulator::replay`](crate::Simulator::replay): nothing is lost but what a log
    /// says.
    #[must_use]
    pub fn to_replay(self) -> CaseModel {
        self.with_drops(&[], &[])
    }

    /// Whether it qualifies for [`Simulator::enumerate`](crate::Simulator::enumerate).
    pub fn can_be_enumerated(&self) -> bool {
        let over_tcp = |plan: &ChannelPlan| matches!(plan.carrier, CarrierModel::Tcp(_));
        self.begins.len() == 1
            && self.programs.episodes == 1
            && self.programs.parties.len() == 2
            && self.programs.channels.iter().all(over_tcp)
            && !self.has_bands()
            && self.paths.iter().all(|path| path.independent_loss().is_some())
    }

    /// Whether a packet may be lost.
    pub fn loses(&self) -> bool {
        self.paths.iter().any(|path| path.independent_loss() != Some(0.0))
    }

    /// The same for [`Simulator::enumerate`](crate::Simulator::enumerate), with nothing lost yet,
    /// and the probability of losing a packet of each direction. `None` where more depends on
    /// chance than losses, costs, lengths and the phase of the ticks.
    pub(crate) fn to_enumerate(&self) -> Option<(CaseModel, [f64; 2])> {
        let [up, down] = self.paths.each_ref().map(PathModel::independent_loss);
        let loss = [up?, down?];
        self.can_be_enumerated().then(|| (self.clone().with_drops(&[], &[]), loss))
    }

    /// Loses these packets of each direction and no others.
    pub(crate) fn lose(&mut self, packets: &[Vec<u64>; 2]) {
        // Trials without loss may be told from others, of whichever model.
        self.goes_by_tape = packets.iter().all(Vec::is_empty);
        for (path, packets) in self.paths.iter_mut().zip(packets) {
            path.lose(packets);
        }
    }

    /// The link's delay towards the client, ns, without jitter.
    pub(crate) fn way_down_ns(&self) -> u64 {
        self.paths[Heading::Down as usize].delay_ns()
    }

    /// The same with a script in the place of random loss: the packets of each direction that
    /// are dropped, counted from 0.
    pub fn with_drops(mut self, up: &[u64], down: &[u64]) -> CaseModel {
        let [path_up, path_down] = self.paths;
        self.repeats = false;
        self.goes_by_tape = false;
        self.paths = [path_up.with_script(up.to_vec()), path_down.with_script(down.to_vec())];
        self
    }

    /// The same, in which some packets of each direction, counted from 0, take so much longer on
    /// the link: they come after later ones where the link does not keep the order.
    pub fn with_held(mut self, up: &[(u64, Nanos)], down: &[(u64, Nanos)]) -> CaseModel {
        let in_ns = |held: &[(u64, Nanos)]| held.iter().map(|(n, time)| (*n, time.0)).collect();
        let [path_up, path_down] = self.paths;
        self.repeats = false;
        self.paths = [path_up.with_held(in_ns(up)), path_down.with_held(in_ns(down))];
        self
    }
}

/// A day for each episode after the last beginning, beside its pauses, and an hour for each
/// instance, which may wait for the others: long after every carrier has given up.
fn horizon(begins: &[u64], programs: &Programs) -> u64 {
    let ops = programs.parties.iter().flat_map(|party| &party.ops);
    let pauses = ops.map(|op| if let Op::Pause { ns } = op { *ns } else { 0 });
    let days = DAY.0.saturating_mul(programs.episodes.into());
    let hours = (DAY.0 / 24).saturating_mul(begins.len() as u64);
    let begins = begins.iter().copied().max().unwrap_or(0);
    pauses.fold(begins.saturating_add(days).saturating_add(hours), u64::saturating_add)
}

fn throttle(key_store: &KeyStoreProfile) -> Option<(u32, u64)> {
    key_store.throttle.map(|throttle| (throttle.calls.max(1), throttle.window.0))
}

fn sleep(key_store: &KeyStoreProfile) -> Option<(u64, Sampler)> {
    let sleep = key_store.sleep.as_ref()?;
    Some((sleep.after.0, Sampler::new(&sleep.wake, Nanos::ZERO)))
}

/// The ticks of both ends, as the first channel with ticks has them; without one nothing asks.
fn jiffies(programs: &Programs) -> [Jiffy; 2] {
    let found = programs.channels.iter().find_map(|channel| channel.carrier.jiffies());
    found.unwrap_or([Jiffy::new(Nanos::from_millis(1)); 2])
}

/// The marks at which some metric of the case takes a counter.
fn counted_at(case: &Case) -> [bool; Mark::COUNT] {
    let mut at = [false; Mark::COUNT];
    for metric in Metric::ALL.iter().filter(|metric| metric.applies_to(case)) {
        if let Definition::Until(_, mark) = metric.definition() {
            at[mark as usize] = true;
        }
    }
    at
}

/// The weakest evidence among the figures that the scenario really uses.
fn evidence(case: &Case, episodes: &[Episode], catalog: &Catalog) -> Result<Evidence, Error> {
    let inputs = inputs_of(case, episodes, catalog)?;
    Ok(Evidence::weakest(inputs.iter().filter_map(|input| input.evidence)))
}

/// Every figure that a case's prediction rests on, with its source and kind.
///
/// # Errors
/// As [`CaseModel::compile`].
pub fn inputs(case: &Case, catalog: &Catalog) -> Result<Vec<Input>, Error> {
    let scenario = scenario(case).map_err(|error| Error::in_case(error.key, error.message))?;
    inputs_of(case, &scenario.episodes, catalog)
}

fn inputs_of(case: &Case, episodes: &[Episode], catalog: &Catalog) -> Result<Vec<Input>, Error> {
    let programs = || episodes.iter().flat_map(|episode| &episode.trace.programs);
    let steps = || programs().flat_map(|program| &program.steps);
    let computes = |operation: Operation| {
        // Waking and the interface are charged by the simulator itself.
        matches!(operation, Operation::System(_, SystemCall::Wake | SystemCall::Interface))
            || steps()
                .any(|step| matches!(step, Step::Compute { operation: o, .. } if *o == operation))
            || (operation == Operation::Sign(Role::Client) && calls(steps(), KeyStoreCall::Sign))
    };
    let mut inputs = inputs_where(case, catalog, computes, |call| calls(steps(), call))?;
    for channel in episodes.iter().flat_map(|episode| &episode.trace.channels) {
        for input in CarrierModel::inputs(&channel.carrier) {
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
    }
    Ok(inputs)
}

/// The profile that `warifu calibrate host` makes.
const THIS_HOST: &str = "this-host";

/// Every cost that device and server lack for a case, in one error.
pub fn lacks(case: &Case, catalog: &Catalog) -> Option<Error> {
    let mut errors = Vec::new();
    for (role, name) in [(Role::Client, &case.device.profile), (Role::Server, &case.server.profile)]
    {
        let operations = operations(case, catalog, role)?;
        errors.extend(catalog.costs(name)?.lacks(&operations, &case.stack));
    }
    let mut errors = errors.into_iter();
    let mut all = errors.next()?;
    // One line for a terminal: the second end's is told when the first is mended.
    for error in errors {
        let lacks = match error.file == all.file {
            true => "as a server it lacks others".to_owned(),
            false => format!("{} lacks costs too", error.file),
        };
        all.message = format!("{}; {lacks}", all.message);
    }
    if case.stack.coap().is_some() {
        let ends = [&case.device.profile, &case.server.profile];
        let here = ends.into_iter().all(|profile| profile == THIS_HOST);
        all.message += match here {
            true => {
                "; `warifu calibrate host` (as root) finds the costs of CoAP as well: run it \
                     again, or use an https stack"
            }
            false => {
                "; CoAP, upload or not, is predicted for this machine after `warifu \
                      calibrate host`: use device and server = \"this-host\", or an https stack"
            }
        };
    }
    Some(all)
}

/// The operations of one end of a case whose cost its device profile lacks, each once. None where
/// the case makes no connection or names a profile that the catalog does not have.
pub fn missing_operations(case: &Case, catalog: &Catalog, role: Role) -> Vec<Operation> {
    let name = match role {
        Role::Client => &case.device.profile,
        Role::Server => &case.server.profile,
    };
    let Some(profile) = catalog.costs(name) else { return Vec::new() };
    let operations = operations(case, catalog, role).unwrap_or_default();
    profile.missing_operations(&operations, &case.stack)
}

/// The operations that one end of a case executes.
fn operations(case: &Case, catalog: &Catalog, role: Role) -> Option<Vec<Operation>> {
    let episodes = scenario(case).ok()?.episodes;
    let software = catalog.key_store(&case.key_store.profile)?.software;
    let mut operations: Vec<Operation> = Vec::new();
    let programs = episodes.iter().flat_map(|episode| &episode.trace.programs);
    let of_role = programs.filter(|program| program.party.role == role);
    for step in of_role.flat_map(|program| &program.steps) {
        match *step {
            Step::Compute { operation, .. } => operations.push(operation),
            Step::KeyStore { call: KeyStoreCall::Sign, .. } if software => {
                operations.push(Operation::Sign(role));
            }
            _ => {}
        }
    }
    operations.push(Operation::System(role, SystemCall::Wake));
    operations.push(Operation::System(role, SystemCall::Interface));
    Some(operations)
}

fn calls<'a>(mut steps: impl Iterator<Item = &'a Step>, call: KeyStoreCall) -> bool {
    steps.any(|step| matches!(step, Step::KeyStore { call: c, .. } if *c == call))
}
