// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A typical connection of a case and one at its P99, simulated once more with what happens
//! written down.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use warifu_model::{Case, Metric, Role, Study};
use warifu_results::{
    TIMELINES_VERSION, Timeline, TimelineActivity, TimelineEnd, TimelineKind, TimelineMark,
    TimelineMessage, TimelinePacket, TimelineTimer, TimelineTimerKind, Timelines,
};
use warifu_sim::{
    Activity, Carried, CarrierTimer, CaseModel, Doing, Outcome, Recording, Simulator,
};

/// The quantiles whose connections are shown.
pub(crate) const QUANTILES: [f64; 2] = [0.50, 0.99];

/// Of a study with more cases, half as many from its beginning and as many of the slowest have
/// timelines.
const MOST_CASES: usize = 24;

/// Entries of a timeline that are stored: a picture of more is black.
const MOST_ENTRIES: usize = 1_500;

/// A connection that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub trial: u64,
    pub connection: u32,
    pub seed: u64,
    /// Its time.
    pub total_ns: u64,
}

/// The connections of a case at [`QUANTILES`]; empty where every connection failed.
pub(crate) type Picks = [Option<Pick>; QUANTILES.len()];

/// The timelines of the cases that are finished, whose connections these are, by the case's number.
///
/// # Errors
/// When a case cannot be compiled, which it was before.
pub(crate) fn timelines(
    study: &Study,
    catalog: &warifu_model::Catalog,
    picks: &[Picks],
) -> Result<Timelines, warifu_model::Error> {
    let mut simulator = Simulator::new();
    let mut timelines = Vec::new();
    for index in chosen(picks) {
        let case = &study.cases[index];
        let model = CaseModel::compile_to_record(case, catalog)?;
        for (quantile, pick) in QUANTILES.into_iter().zip(picks[index]) {
            let found = pick.and_then(|pick| timeline(&mut simulator, &model, case, pick));
            timelines.extend(found.map(|found| Timeline { quantile, ..found }));
        }
    }
    let which = match picks.len() {
        1 => "the only case".to_owned(),
        count if count <= MOST_CASES => format!("all {count} cases"),
        count => format!(
            "{MOST_CASES} of {count} cases: the first {} and the slowest by P99",
            MOST_CASES / 2
        ),
    };
    Ok(Timelines { version: TIMELINES_VERSION, which, timelines })
}

/// The cases that have timelines, in their order.
fn chosen(picks: &[Picks]) -> BTreeSet<usize> {
    let mut chosen: BTreeSet<usize> = (0..picks.len().min(MOST_CASES)).collect();
    if picks.len() > MOST_CASES {
        chosen.retain(|&index| index < MOST_CASES / 2);
        let mut slowest: Vec<usize> = (0..picks.len()).collect();
        let slowness = |&index: &usize| {
            let last = picks[index].last().copied().flatten();
            Reverse(last.map_or(0, |pick| pick.total_ns))
        };
        slowest.sort_by_key(slowness);
        for index in slowest {
            if chosen.len() == MOST_CASES {
                break;
            }
            chosen.insert(index);
        }
    }
    chosen
}

fn timeline(
    simulator: &mut Simulator,
    model: &CaseModel,
    case: &Case,
    pick: Pick,
) -> Option<Timeline> {
    let metric = Metric::with_stages(&case.stack)?;
    let mut outcome = Outcome::default();
    let found = simulator.record(model, pick.seed, pick.connection as usize, &mut outcome)?;
    debug_assert_eq!(found.total_ns, pick.total_ns);
    let Recording { total_ns, marks, mut activities, mut messages, mut packets, mut timers } =
        found;
    let mut left_out = 0;
    let mut room = MOST_ENTRIES;
    cut(&mut packets, &mut room, &mut left_out);
    cut(&mut messages, &mut room, &mut left_out);
    cut(&mut activities, &mut room, &mut left_out);
    cut(&mut timers, &mut room, &mut left_out);
    let kept = messages.len();
    Some(Timeline {
        case_id: case.id().0,
        metric: metric.name().to_owned(),
        quantile: 0.0,
        trial: pick.trial,
        connection: pick.connection,
        seed: pick.seed,
        total_ns,
        marks: marks
            .into_iter()
            .map(|(mark, at_ns)| TimelineMark { name: mark.name().to_owned(), at_ns })
            .collect(),
        activities: activities.into_iter().map(activity).collect(),
        messages: messages
            .into_iter()
            .map(|of| TimelineMessage {
                end: end(of.role),
                label: of.label,
                bytes: of.bytes,
                at_ns: of.at_ns,
            })
            .collect(),
        packets: packets.into_iter().map(|of| packet(of, kept)).collect(),
        timers: timers
            .into_iter()
            .map(|of| TimelineTimer {
                end: end(of.role),
                at_ns: of.at_ns,
                kind: match of.timer {
                    CarrierTimer::Retransmit => TimelineTimerKind::Retransmit,
                    CarrierTimer::DelayedAck => TimelineTimerKind::DelayedAck,
                },
            })
            .collect(),
        left_out,
    })
}

/// Cuts a list to the room that is left.
fn cut<T>(list: &mut Vec<T>, room: &mut usize, left_out: &mut u32) {
    *left_out += list.len().saturating_sub(*room) as u32;
    list.truncate(*room);
    *room -= list.len();
}

const fn end(role: Role) -> TimelineEnd {
    match role {
        Role::Client => TimelineEnd::Client,
        Role::Server => TimelineEnd::Server,
    }
}

fn activity(of: Activity) -> TimelineActivity {
    let (kind, name) = match of.doing {
        Doing::Operation(operation) => {
            let system = matches!(operation, warifu_model::Operation::System(..));
            let kind = if system { TimelineKind::System } else { TimelineKind::Compute };
            (kind, operation.to_string())
        }
        Doing::Wake => (TimelineKind::System, format!("{}.system.wake", of.role.name())),
        Doing::KeyStore(call) => (TimelineKind::KeyStore, call.name().to_owned()),
        Doing::Queue => (TimelineKind::Queue, "busy with others".to_owned()),
        Doing::Pause => (TimelineKind::Pause, "pause".to_owned()),
    };
    TimelineActivity { end: end(of.role), kind, name, from_ns: of.from_ns, until_ns: of.until_ns }
}

fn packet(of: Carried, messages: usize) -> TimelinePacket {
    let index = |at: usize| at.min(messages) as u32;
    TimelinePacket {
        end: end(of.role),
        at_ns: of.packet.time_ns,
        arrives_ns: of.packet.arrives_ns,
        bytes: of.packet.bytes,
        flags: of.packet.flags,
        again: of.packet.again,
        messages: (index(of.messages.start), index(of.messages.end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(times: &[u64]) -> Vec<Picks> {
        let pick = |&total_ns: &u64| {
            let pick = Pick { trial: 0, connection: 0, seed: 0, total_ns };
            [Some(pick), Some(pick)]
        };
        times.iter().map(pick).collect()
    }

    #[test]
    fn every_case_of_a_small_study() {
        assert_eq!(chosen(&picks(&[3, 1, 2])).into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn first_and_slowest_cases_of_a_large_study() {
        let times: Vec<u64> =
            (0..100).map(|case| if case < 50 { case } else { 100 - case }).collect();
        let chosen: Vec<usize> = chosen(&picks(&times)).into_iter().collect();
        assert_eq!(chosen.len(), MOST_CASES);
        assert_eq!(chosen[..12], (0..12).collect::<Vec<_>>());
        assert!(chosen[12..].iter().all(|case| (44..=56).contains(case)), "{chosen:?}");
    }
}
