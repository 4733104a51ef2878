// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The exact tier: loss patterns in order of probability, each with its weight, run through the
//! same state machines as the event tier's trials.
//!
//! A pattern is a set of packets that are lost, by direction and number. Of a trial with given
//! costs, lengths and phase of the ticks, the packets that are offered to the link and arrive
//! before its end decide how it goes; with `k` of them lost and `n` not, its pattern has the
//! probability `p^k (1 - p)^n`, and those of all patterns add up to one. Patterns are found by
//! running the known ones: each packet that arrived after the last that is lost may be lost as
//! well.
//!
//! What is not lost is sampled: several trials for each pattern, with costs and lengths drawn as in
//! the event tier, and the phases of the device's ticks spread evenly over the pattern of the timer
//! wheel, since they move what a timer decides by up to 32 ms (those of a server with ticks of
//! another length are at random). Each is an atom whose weight is its pattern's probability over
//! its number of trials. Patterns are taken until those left have less than a given probability,
//! the residual.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use crate::case_model::CaseModel;
use crate::engine::Simulator;
use crate::outcome::Outcome;
use crate::random::mix;
use crate::route::Heading;

/// How far the exact tier goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Patterns are taken until those left have less probability together.
    pub residual: f64,
    /// Trials of the pattern without loss, the quickest to run: what differs in it is costs alone,
    /// and it is the body of the distribution.
    pub lossless_trials: f64,
    /// Trials of every other pattern, over its probability: the noise of a quantile comes from
    /// those whose trials are on both its sides, by the square of their probability over their
    /// trials.
    pub lossy_trials: f64,
    /// Patterns at most, whatever is left then.
    pub most_patterns: usize,
}

/// What may be left out at most for a case to be taken, over what is aimed at: an estimate is not
/// held to the last digit.
const RESIDUAL_SLACK: f64 = 2.0;

/// Where a packet is rather lost than not, patterns with more losses are the more probable ones,
/// and those are found last.
const MOST_LOSS: f64 = 0.5;

/// Patterns that are found at most, taken or not, some 150 MB of them.
const MOST_FOUND: usize = 500_000;

/// Trials that tell how many packets a connection takes where some are lost.
const PILOTS: u64 = 100;

/// Trials between two looks at whether to go on.
const BETWEEN_LOOKS: u64 = 256;

/// What [`Simulator::few_patterns_suffice`] expects the exact tier to leave out, as a share of all
/// connections, where that is more than it may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TooManyPatterns {
    /// About the probability of the patterns that would not be taken.
    pub residual: f64,
    /// What they may have at most.
    pub most: f64,
}

/// What was enumerated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Enumerated {
    /// The probability of all patterns that were not taken: what the weights of all atoms lack to
    /// one. Statistics are of the rest. A quantile `q` of all is therefore between the rest's
    /// quantiles whose weights are `q` less the residual and `q`; a share of all is off by the
    /// residual at most.
    pub residual: f64,
    /// Patterns that were taken.
    pub patterns: usize,
    /// Trials that were run.
    pub trials: u64,
}

/// One trial of a pattern: an atom of the distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Atom {
    /// Its probability.
    pub weight: f64,
    /// What its costs, lengths and phase are drawn by.
    pub seed: u64,
    /// The number of its pattern, in the order in which they were taken.
    pub pattern: u32,
    /// How many trials that has.
    pub trials: u64,
}

/// A loss pattern: the packets of each direction that are lost, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Pattern([Vec<u64>; 2]);

/// A pattern that was found and not yet taken.
#[derive(Clone, Debug)]
struct Found {
    /// About its probability.
    probability: f64,
    pattern: Pattern,
}

/// What the packets of a trial came to until its end, in each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Packets that arrived.
    pub arrived: [u64; 2],
    /// Packets that were offered, but for those that were still on their way.
    pub offered: [u64; 2],
    /// Whether every packet of the pattern was offered and would have arrived.
    pub met: bool,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        let (lossless_trials, lossy_trials) = (10_000.0, 80_000.0);
        Accuracy { residual: 1e-3, lossless_trials, lossy_trials, most_patterns: 20_000 }
    }
}

impl Simulator {
    /// Whether so many patterns as are taken at most have nearly all of the probability, for a
    /// model that [`CaseModel::can_be_enumerated`]. It goes by the packets of some trials, with
    /// those that are sent again.
    ///
    /// # Errors
    /// What would be left out, where that is more than twice the residual that is aimed at.
    pub fn few_patterns_suffice(
        &mut self,
        model: &CaseModel,
        accuracy: Accuracy,
    ) -> Result<(), TooManyPatterns> {
        let Some((_, loss)) = model.to_enumerate() else { return Ok(()) };
        let most = RESIDUAL_SLACK * accuracy.residual;
        if loss.iter().any(|&loss| loss > MOST_LOSS) {
            return Err(TooManyPatterns { residual: 1.0, most });
        }
        let mut outcome = Outcome::default();
        let mut pilots: Vec<[u64; 2]> = (0..PILOTS)
            .map(|pilot| self.run_phase(model, (mix(pilot), mix(!pilot)), &mut outcome).offered)
            .collect();
        pilots.sort_unstable();
        let of_all = pilots.chunk_by(|a, b| a == b).map(|same| {
            let share = same.len() as f64 / PILOTS as f64;
            share * left_out(same[0], loss, accuracy.most_patterns)
        });
        let residual: f64 = of_all.sum();
        if residual <= most { Ok(()) } else { Err(TooManyPatterns { residual, most }) }
    }

    /// Gives `keep` each atom and its outcome. The same model, seed and
    /// accuracy give the same atoms. `go_on` is asked now and then. `None` if it says no, and where
    /// more than losses, costs, lengths and phases depends on chance: jitter, bursts of losses,
    /// several connections, boards with bands.
    pub fn enumerate(
        &mut self,
        model: &CaseModel,
        seed: u64,
        accuracy: Accuracy,
        go_on: &mut dyn FnMut() -> bool,
        mut keep: impl FnMut(Atom, &Outcome),
    ) -> Option<Enumerated> {
        let (mut scripted, loss) = model.to_enumerate()?;
        let mut outcome = Outcome::default();
        let mut done = Enumerated { residual: 1.0, ..Enumerated::default() };
        let mut known = HashSet::from([Pattern::default()]);
        let mut waiting =
            BinaryHeap::from([Found { probability: 1.0, pattern: Pattern::default() }]);
        let (mut next_seed, mut taken_probability) = (seed, 0.0);
        while let Some(Found { probability, pattern }) = waiting.pop() {
            if taken_probability >= 1.0 - accuracy.residual
                || done.patterns >= accuracy.most_patterns
            {
                break;
            }
            scripted.lose(&pattern.0);
            let trials = accuracy.trials(&pattern, probability);
            let first_phase = mix(next_seed);
            let mut offered = [0; 2];
            let before = taken_probability;
            for trial in 0..trials {
                if trial.is_multiple_of(BETWEEN_LOOKS) && !go_on() {
                    return None;
                }
                next_seed = mix(next_seed ^ trial);
                let phase = phase(first_phase, trial, trials);
                let traffic = self.run_phase(&scripted, (next_seed, phase), &mut outcome);
                offered = [0, 1].map(|way| traffic.offered[way].max(offered[way]));
                if traffic.met {
                    let weight = pattern.probability(loss, traffic.arrived) / trials as f64;
                    taken_probability += weight;
                    if weight > 0.0 {
                        let (seed, pattern) = (next_seed, done.patterns as u32);
                        keep(Atom { weight, seed, pattern, trials }, &outcome);
                    }
                }
            }
            // From here on its own, not the guess by which it was chosen.
            let probability = taken_probability - before;
            done.trials += trials;
            done.patterns += 1;
            for (child, heading) in pattern.children(offered) {
                if known.len() >= MOST_FOUND {
                    // Later ones are less probable, and count as left out.
                    break;
                }
                let loss = loss[heading as usize];
                if loss > 0.0 && known.insert(child.clone()) {
                    // About: of as many packets one more is lost.
                    let probability = probability * loss / (1.0 - loss).max(loss);
                    waiting.push(Found { probability, pattern: child });
                }
            }
        }
        done.residual = (1.0 - taken_probability).max(0.0);
        Some(done)
    }
}

impl Accuracy {
    /// How many trials a pattern of this probability takes: an odd number, so that phases that
    /// divide the pattern of the timer wheel evenly divide each of its levels evenly as well.
    fn trials(&self, pattern: &Pattern, probability: f64) -> u64 {
        let lossless = pattern.0.iter().all(Vec::is_empty);
        let wanted = if lossless { self.lossless_trials } else { self.lossy_trials * probability };
        wanted.ceil() as u64 | 1
    }
}

/// The 64 bits of a trial's clock ([`Clock::from_bits`]): the upper ones, its place in the wheel's
/// pattern, evenly spread over all trials of a pattern, the lower ones at random.
///
/// [`Clock::from_bits`]: crate::clock::Clock::from_bits
fn phase(first: u64, trial: u64, trials: u64) -> u64 {
    // From a place at random on, as systematic sampling has it.
    let place = first.wrapping_add((u64::MAX / trials).wrapping_mul(trial));
    (place & !0xf_ffff) | (mix(place) & 0xf_ffff)
}

/// The probability of all but the `patterns` most probable ones, where as many packets are sent in
/// each direction and each is lost by itself.
fn left_out(packets: [u64; 2], loss: [f64; 2], patterns: usize) -> f64 {
    let up = ways_to_lose(packets[0], loss[0], patterns);
    let down = ways_to_lose(packets[1], loss[1], patterns);
    // Those with as many losses in each direction are as probable as each other.
    let mut groups: Vec<(f64, f64)> = Vec::with_capacity(up.len() * down.len());
    for &(up, count) in &up {
        groups.extend(down.iter().map(|&(down, others)| (up * down, count * others)));
    }
    groups.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut taken) = (patterns as f64, 0.0);
    for (probability, count) in groups {
        let count = count.min(left);
        taken += probability * count;
        left -= count;
    }
    (1.0 - taken).max(0.0)
}

/// For 0, 1, 2 and so on of `packets` lost: the probability of each way to lose so many, and how
/// many ways there are; until there are more than `most` of them.
fn ways_to_lose(packets: u64, loss: f64, most: usize) -> Vec<(f64, f64)> {
    let (mut ways, mut count) = (Vec::new(), 1.0);
    for lost in 0..=packets {
        let kept = (packets - lost) as f64;
        ways.push((loss.powf(lost as f64) * (1.0 - loss).powf(kept), count));
        if count > most as f64 || loss == 0.0 {
            break;
        }
        count *= kept / (lost + 1) as f64;
    }
    ways
}

impl Pattern {
    /// Its probability where packets are lost with these and so many arrive, in each direction.
    fn probability(&self, loss: [f64; 2], arrived: [u64; 2]) -> f64 {
        let way = |way: usize| {
            let lost = self.0[way].len() as f64;
            loss[way].powf(lost) * (1.0 - loss[way]).powf(arrived[way] as f64)
        };
        way(0) * way(1)
    }

    /// The patterns with one more packet lost, of those offered, and its direction. Each
    /// direction's come in their order, so that every pattern is found from those that lack its
    /// last loss.
    fn children(&self, offered: [u64; 2]) -> Vec<(Pattern, Heading)> {
        let mut children = Vec::new();
        for heading in [Heading::Up, Heading::Down] {
            let way = heading as usize;
            let next = self.0[way].last().map_or(0, |last| last + 1);
            for packet in next..offered[way] {
                let mut child = self.clone();
                child.0[way].push(packet);
                children.push((child, heading));
            }
        }
        children
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Found) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Found {}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Found) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Found {
    /// By probability; of equal ones the order is that of their packets, so that it is always the
    /// same.
    fn cmp(&self, other: &Found) -> Ordering {
        let by_probability = self.probability.total_cmp(&other.probability);
        by_probability.then_with(|| other.pattern.0.cmp(&self.pattern.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4096 jiffies, of which a level's bucket takes 1, 8, 64 or 512.
    #[test]
    fn phases_are_spread_over_every_level_of_the_wheel() {
        for trials in [1_u64, 9, 301] {
            for buckets in [1_u64, 8, 64, 512, 4_096] {
                let within = |trial| phase(7, trial, trials).wrapping_mul(buckets);
                let mut places: Vec<u64> = (0..trials).map(within).collect();
                places.sort_unstable();
                let widest = places.windows(2).map(|two| two[1] - two[0]).max().unwrap_or(0);
                // The lower bits are at random.
                let bound = 2_f64.powi(64) / trials as f64 + buckets as f64 * 2_f64.powi(21);
                assert!(widest as f64 <= bound, "{trials} {buckets}: {widest}");
            }
        }
    }

    #[test]
    fn what_the_most_probable_patterns_leave_out() {
        // Of 20 packets and 20 % loss, none to four lost are 6,196 patterns, five 15,504 more.
        let binomial = |lost: i32, ways: f64| ways * 0.2_f64.powi(lost) * 0.8_f64.powi(20 - lost);
        let few = [1.0, 20.0, 190.0, 1_140.0, 4_845.0];
        let taken: f64 = (0..).zip(few).map(|(lost, ways)| binomial(lost, ways)).sum();
        assert!((left_out([20, 0], [0.2, 0.2], 6_196) - (1.0 - taken)).abs() < 1e-9);
        // The direction makes no difference, and none of 10,000 packets is lost without loss.
        let split = left_out([9, 11], [0.2, 0.2], 6_196);
        assert!((split - (1.0 - taken)).abs() < 1e-9, "{split} {taken}");
        assert_eq!(left_out([10_000, 10_000], [0.0, 0.0], 1), 0.0);
        assert!(left_out([1_000, 500], [0.02, 0.02], 20_000) > 0.9);
    }

    #[test]
    fn children_are_each_found_once_from_a_parent() {
        let pattern = Pattern([vec![1], vec![]]);
        let children = pattern.children([3, 2]);
        let sets: Vec<[Vec<u64>; 2]> = children.into_iter().map(|(child, _)| child.0).collect();
        assert_eq!(sets, [[vec![1, 2], vec![]], [vec![1], vec![0]], [vec![1], vec![1]]]);
    }
}
