// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory that packets lie in while they are under way.

/// Packets for which memory is set aside at the start: 75 ms at 1 Gbit/s and 1500 bytes.
pub(crate) const POOL_PACKETS: usize = 8_192;
/// Packets under way at most, 100 MB at 1500 bytes; what exceeds it is dropped as overload and
/// spoils the report.
const POOL_PACKETS_MAX: usize = 65_536;

/// Packet buffers, made at the start and never returned to the allocator.
pub(crate) struct Pool {
    free: Vec<Box<[u8]>>,
    made: usize,
    buffer_bytes: usize,
}

impl Pool {
    /// A pool for packets of an MTU.
    pub(crate) fn new(mtu: usize) -> Pool {
        // One byte more than the MTU tells an oversize packet, which `read` cuts off; whole cache
        // lines keep buffers apart.
        let buffer_bytes = (mtu + 1).next_multiple_of(64);
        let mut pool = Pool { free: Vec::with_capacity(POOL_PACKETS_MAX), made: 0, buffer_bytes };
        for _ in 0..POOL_PACKETS {
            let buffer = pool.make();
            pool.free.push(buffer);
        }
        pool
    }

    /// A buffer to read into; there is always one.
    pub(crate) fn take(&mut self) -> Box<[u8]> {
        match self.free.pop() {
            Some(buffer) => buffer,
            None => self.make(),
        }
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        self.free.push(buffer);
    }

    /// Whether a packet may stay in its buffer until it is due.
    pub(crate) fn has_room(&self) -> bool {
        self.made < POOL_PACKETS_MAX || !self.free.is_empty()
    }

    fn make(&mut self) -> Box<[u8]> {
        self.made += 1;
        // Not zeroes, which the allocator may leave for the first write to fault in.
        vec![0xA5; self.buffer_bytes].into_boxed_slice()
    }
}
