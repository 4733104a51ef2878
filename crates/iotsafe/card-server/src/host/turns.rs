// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose turn it is at the card.

use std::sync::{Condvar, Mutex, PoisonError};

/// Turns in the order of arrival, which a mutex alone does not promise.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The next ticket, and the one whose turn it is.
    tickets: Mutex<(u64, u64)>,
    called: Condvar,
}

/// It is the holder's turn until this is dropped.
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    pub(super) fn take(&self) -> Turn<'_> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let own = tickets.0;
        tickets.0 += 1;
        while tickets.1 != own {
            tickets = self.called.wait(tickets).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.tickets.lock().unwrap_or_else(PoisonError::into_inner).1 += 1;
        self.0.called.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    #[test]
    fn turns_come_in_the_order_of_arrival() {
        let turns = Arc::new(Turns::default());
        let (sender, receiver) = mpsc::channel();
        let first = turns.take();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (turns, sender) = (Arc::clone(&turns), sender.clone());
                // The ticket before it must have been drawn.
                while turns.tickets.lock().unwrap().0 < number + 1 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::spawn(move || {
                    let _turn = turns.take();
                    sender.send(number).unwrap();
                })
            })
            .collect();
        while turns.tickets.lock().unwrap().0 < 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
