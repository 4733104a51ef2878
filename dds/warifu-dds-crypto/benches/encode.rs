// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One sample encrypted through the function that Cyclone calls, with its counters; beside it what
//! of that is allocating and freeing the buffer.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use domain::{AEADS, Domain, FRAME_BYTES};
use warifu_dds_crypto::shell::abi::Seq;

mod domain;

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode_serialized_payload");
    for bytes in [16_u32, 64, 1024, 16_384, 65_536, 1_048_576] {
        let mut sample = vec![1_u8; bytes as usize];
        let plain = Seq { maximum: bytes, length: bytes, buffer: sample.as_mut_ptr() };
        group.throughput(Throughput::Bytes(bytes.into()));
        for (name, init) in AEADS {
            let domain = Domain::new(init);
            group.bench_function(BenchmarkId::new(name, bytes), |b| {
                b.iter(|| domain.encode(black_box(&plain)));
            });
        }
        let encoded = bytes as usize + FRAME_BYTES;
        group.bench_function(BenchmarkId::new("malloc and free", bytes), |b| {
            // SAFETY: freed once.
            b.iter(|| unsafe { libc::free(black_box(libc::malloc(black_box(encoded)))) });
        });
    }
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
