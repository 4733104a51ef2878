// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How fast a sweep's results are written: cases of 370 weighted rows with every case column.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warifu_model::{CaseId, ColumnType, Evidence, Method, Metric, Stage, Value, case_columns};
use warifu_results::{CaseRows, FolderWriter, Manifest, Row, Rows, Sink, Weights};

const CASES: u64 = 1_000;
const ROWS: u64 = 370;

fn case(number: u64) -> CaseRows {
    let mut rows = Rows::with_capacity(ROWS as usize);
    for trial in 0..ROWS {
        let stage = Stage::ALL.get(trial as usize).copied();
        let value = 184e6 + (number * 31 + trial * 17_011) as f64;
        let metric = Metric::ALL[trial as usize * 4 / ROWS as usize];
        rows.push(Row { connection: 0, trial, metric, stage, value, weight: 3.0, seed: 7 });
    }
    let columns = case_columns().map(|column| Some(setting(column.column_type, number % 10)));
    CaseRows {
        case_id: CaseId(format!("{number:016x}")),
        columns: columns.collect(),
        method: Method::Simulated,
        evidence: Evidence::Published,
        weights: Weights::Trials,
        rows,
    }
}

fn setting(of: ColumnType, number: u64) -> Value {
    match of {
        ColumnType::Text => Value::Text(format!("setting {number}")),
        ColumnType::Bool => Value::Bool(number.is_multiple_of(2)),
        ColumnType::U16 => Value::U16(number as u16),
        ColumnType::U32 => Value::U32(number as u32),
        ColumnType::U64 => Value::U64(number),
        ColumnType::F64 => Value::F64(number as f64),
    }
}

fn manifest() -> Manifest {
    let text = r#"{"schema_version": 2, "half": "predicted", "run_id": "bench", "seed": 1,
        "study": {"name": "bench", "sha256": "", "text": ""}, "started": ""}"#;
    Manifest::parse(text, "bench").expect("a manifest")
}

fn bench(criterion: &mut Criterion) {
    let cases: Vec<_> = (0..CASES).map(case).collect();
    let place = tempfile::tempdir().expect("a temporary folder");
    let mut group = criterion.benchmark_group("folder");
    group.throughput(Throughput::Elements(CASES * ROWS)).sample_size(10);
    group.bench_function("rows", |bencher| {
        bencher.iter(|| {
            let folder = place.path().join("predicted");
            let mut writer = FolderWriter::create(&folder, manifest()).expect("a folder");
            for case in &cases {
                writer.case(case).expect("room on the disk");
            }
            black_box(writer.finish(true, None).expect("room on the disk"))
        });
    });
    group.finish();

    let values: Vec<u64> =
        (0..1_000_u64).map(|trial| 184_000_000 + trial * trial % 7_919).collect();
    let mut group = criterion.benchmark_group("distribution");
    group.throughput(Throughput::Elements(values.len() as u64));
    group.bench_function("trials", |bencher| {
        let mut rows = Rows::default();
        bencher.iter(|| {
            rows.clear();
            rows.push_distribution(Metric::TcpConnect, &mut values.clone(), 0, 64, 1);
            black_box(rows.len())
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
