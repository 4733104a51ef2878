// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A column whose values come in runs. A case repeats its settings in every row, so such a column
//! is kept as runs and encoded as runs: the Parquet library would look every row's value up, in
//! each of about fifty columns.

use std::collections::HashMap;
use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as Physical, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use warifu_model::Value;

/// zstd's own default; higher levels cost more time than they save space here.
pub(crate) const ZSTD_LEVEL: i32 = 3;

/// Each value once, and which of them fills which run of rows; `None` for null.
#[derive(Default)]
pub(crate) struct Runs {
    /// Values as Parquet's PLAIN encoding has them, byte arrays without their length.
    values: Vec<Vec<u8>>,
    known: HashMap<Vec<u8>, u32>,
    runs: Vec<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    value: Option<u32>,
    rows: usize,
}

impl Runs {
    /// Adds `rows` rows of `text`.
    pub(crate) fn push_text(&mut self, text: &str, rows: usize) {
        self.push_bytes(text.as_bytes(), rows);
    }

    /// Adds `rows` rows of `number`, or of null.
    pub(crate) fn push_u32(&mut self, number: Option<u32>, rows: usize) {
        match number {
            Some(number) => self.push_bytes(&number.to_le_bytes(), rows),
            None => self.push_null(rows),
        }
    }

    /// Adds `rows` rows of `number`, or of null.
    pub(crate) fn push_u64(&mut self, number: Option<u64>, rows: usize) {
        match number {
            Some(number) => self.push_bytes(&number.to_le_bytes(), rows),
            None => self.push_null(rows),
        }
    }

    /// Adds `rows` rows of `value`, or of null.
    pub(crate) fn push(&mut self, value: Option<&Value>, rows: usize) {
        match value {
            None => self.push_null(rows),
            Some(Value::Text(text)) => self.push_text(text, rows),
            Some(&Value::Bool(flag)) => self.push_bytes(&[u8::from(flag)], rows),
            Some(&Value::U16(number)) => {
                self.push_bytes(&u32::from(number).to_le_bytes(), rows);
            }
            Some(Value::U32(number)) => self.push_bytes(&number.to_le_bytes(), rows),
            Some(Value::U64(number)) => self.push_bytes(&number.to_le_bytes(), rows),
            Some(Value::F64(number)) => self.push_bytes(&number.to_le_bytes(), rows),
        }
    }

    /// Adds `rows` rows of null.
    pub(crate) fn push_null(&mut self, rows: usize) {
        self.push_run(None, rows);
    }

    /// Writes the rows as the row group's next column and empties it.
    pub(crate) fn write<W: Write + Send>(
        &mut self,
        out: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
    ) -> Result<(), ParquetError> {
        let (chunk, close) = self.encode(column)?;
        *self = Runs::default();
        out.append_column(&chunk, close)
    }

    fn push_bytes(&mut self, value: &[u8], rows: usize) {
        let last = self.runs.last().and_then(|run| run.value);
        if last.is_some_and(|last| self.values[last as usize] == value) {
            self.push_run(last, rows);
            return;
        }
        let number = self.number(value);
        self.push_run(Some(number), rows);
    }

    fn push_run(&mut self, value: Option<u32>, rows: usize) {
        match self.runs.last_mut() {
            Some(last) if last.value == value => last.rows += rows,
            _ if rows > 0 => self.runs.push(Run { value, rows }),
            _ => {}
        }
    }

    /// Few values are found quicker by looking at each than by hashing.
    fn number(&mut self, value: &[u8]) -> u32 {
        let near = self.values.len().min(16);
        if let Some(number) = self.values[..near].iter().position(|known| known == value) {
            return number as u32;
        }
        if let Some(&number) = self.known.get(value) {
            return number;
        }
        // A row group has far fewer rows than u32 has numbers.
        let number = self.values.len() as u32;
        self.values.push(value.to_vec());
        self.known.insert(value.to_vec(), number);
        number
    }

    /// A column chunk: a dictionary page where the type has one, and one data page.
    fn encode(&self, column: ColumnDescPtr) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let rows: usize = self.runs.iter().map(|run| run.rows).sum();
        let nulls = self.runs.iter().filter(|run| run.value.is_none()).map(|run| run.rows).sum();
        let physical = column.physical_type();
        // Booleans have no dictionary, and an empty one helps nobody.
        let has_dictionary = physical != Physical::BOOLEAN && !self.values.is_empty();

        let mut data = Vec::new();
        if column.max_def_level() > 0 {
            let levels = self.definition_levels();
            data.extend_from_slice(&(levels.len() as u32).to_le_bytes());
            data.extend_from_slice(&levels);
        }
        if has_dictionary {
            self.dictionary_numbers(&mut data);
        } else {
            self.bits(&mut data);
        }

        let mut sink = TrackedWrite::new(Vec::with_capacity(data.len() + 64));
        let mut pages = SerializedPageWriter::new(&mut sink);
        let mut uncompressed = 0;
        if has_dictionary {
            let dictionary = self.dictionary(physical);
            let page = Page::DictionaryPage {
                buf: compress(&dictionary)?,
                num_values: self.values.len() as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let page = pages.write_page(CompressedPage::new(page, dictionary.len()))?;
            uncompressed += page.uncompressed_size;
        }
        let page = Page::DataPage {
            buf: compress(&data)?,
            num_values: rows as u32,
            encoding: if has_dictionary { Encoding::RLE_DICTIONARY } else { Encoding::PLAIN },
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = pages.write_page(CompressedPage::new(page, data.len()))?;
        uncompressed += page.uncompressed_size;
        let chunk = Bytes::from(sink.into_inner()?);

        let mut encodings = vec![Encoding::PLAIN, Encoding::RLE];
        if has_dictionary {
            encodings.push(Encoding::RLE_DICTIONARY);
        }
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_encodings(encodings)
            .set_num_values(rows as i64)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_data_page_offset(page.offset as i64)
            .set_statistics(self.statistics(physical, nulls))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((chunk, close))
    }

    /// Parquet's PLAIN encoding of the values; each byte array has its length before it.
    fn dictionary(&self, physical: Physical) -> Vec<u8> {
        let mut out = Vec::new();
        for value in &self.values {
            if physical == Physical::BYTE_ARRAY {
                out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            }
            out.extend_from_slice(value);
        }
        out
    }

    /// For each run its length and whether it has a value.
    fn definition_levels(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut runs = self.runs.iter().peekable();
        while let Some(run) = runs.next() {
            let mut rows = run.rows;
            while let Some(next) = runs.next_if(|next| next.value.is_some() == run.value.is_some())
            {
                rows += next.rows;
            }
            push_run_length(&mut out, rows);
            out.push(u8::from(run.value.is_some()));
        }
        out
    }

    /// The bit width, then for each run of values its length and its value's number (Parquet's RLE
    /// and bit-packing hybrid, of which only RLE is used).
    fn dictionary_numbers(&self, out: &mut Vec<u8>) {
        let largest = self.values.len().saturating_sub(1) as u32;
        // Some readers reject a width of zero, which the format allows for a single value.
        let bit_width = (u32::BITS - largest.leading_zeros()).max(1);
        let byte_width = bit_width.div_ceil(8) as usize;
        out.push(bit_width as u8);
        for run in &self.runs {
            if let Some(value) = run.value {
                push_run_length(out, run.rows);
                out.extend_from_slice(&value.to_le_bytes()[..byte_width]);
            }
        }
    }

    /// Booleans one bit each, the least significant first (Parquet's PLAIN encoding).
    fn bits(&self, out: &mut Vec<u8>) {
        let (mut byte, mut filled) = (0_u8, 0_u32);
        for run in &self.runs {
            let Some(value) = run.value else { continue };
            let bit = u8::from(self.values[value as usize] != [0]);
            for _ in 0..run.rows {
                byte |= bit << filled;
                filled += 1;
                if filled == u8::BITS {
                    out.push(byte);
                    (byte, filled) = (0, 0);
                }
            }
        }
        if filled > 0 {
            out.push(byte);
        }
    }

    /// The least and the largest value, so that a reader can pass over row groups.
    fn statistics(&self, physical: Physical, nulls: usize) -> Statistics {
        let nulls = Some(nulls as u64);
        match physical {
            Physical::BOOLEAN => {
                let flags = || self.values.iter().map(|value| value != &[0]);
                Statistics::boolean(flags().min(), flags().max(), None, nulls, false)
            }
            // Integers are unsigned, and so is their order.
            Physical::INT32 => {
                let numbers = || self.values.iter().map(|value| u32::from_le_bytes(array(value)));
                let signed = |number: Option<u32>| number.map(u32::cast_signed);
                let (least, most) = (signed(numbers().min()), signed(numbers().max()));
                Statistics::int32(least, most, None, nulls, false)
            }
            Physical::INT64 => {
                let numbers = || self.values.iter().map(|value| u64::from_le_bytes(array(value)));
                let signed = |number: Option<u64>| number.map(u64::cast_signed);
                let (least, most) = (signed(numbers().min()), signed(numbers().max()));
                Statistics::int64(least, most, None, nulls, false)
            }
            Physical::DOUBLE => {
                let numbers = || self.values.iter().map(|value| f64::from_le_bytes(array(value)));
                let (least, most) = (numbers().reduce(f64::min), numbers().reduce(f64::max));
                Statistics::double(least, most, None, nulls, false)
            }
            _ => {
                let bound = |value: Option<&Vec<u8>>| value.map(|v| ByteArray::from(v.as_slice()));
                let (least, most) = (self.values.iter().min(), self.values.iter().max());
                Statistics::byte_array(bound(least), bound(most), None, nulls, false)
            }
        }
    }
}

/// The bytes of a number, as [`Runs::push`] stored them.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

/// The header of a run in Parquet's RLE: the length, one bit to the left, as ULEB128.
fn push_run_length(out: &mut Vec<u8>, rows: usize) {
    let mut header = (rows as u64) << 1;
    while header >= 0x80 {
        out.push(header as u8 | 0x80);
        header >>= 7;
    }
    out.push(header as u8);
}

fn compress(bytes: &[u8]) -> Result<Bytes, ParquetError> {
    let compressed = zstd::bulk::compress(bytes, ZSTD_LEVEL)?;
    Ok(Bytes::from(compressed))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{LogicalType, Repetition};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::record::Field;
    use parquet::schema::types::Type;
    use proptest::prelude::*;

    use super::*;

    /// Writes the values as the only column of a file and reads them back.
    fn round_trip(
        values: &[Option<Value>],
        physical: Physical,
        logical: Option<LogicalType>,
    ) -> Vec<Option<Value>> {
        let nullable = values.iter().any(Option::is_none);
        let field = Type::primitive_type_builder("value", physical)
            .with_logical_type(logical)
            .with_repetition(if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED })
            .build()
            .unwrap();
        let schema =
            Type::group_type_builder("row").with_fields(vec![Arc::new(field)]).build().unwrap();
        let mut file =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
        let column = file.schema_descr().column(0);
        let mut group = file.next_row_group().unwrap();
        let mut runs = Runs::default();
        for value in values {
            runs.push(value.as_ref(), 1);
        }
        runs.write(&mut group, column).unwrap();
        group.close().unwrap();
        let reader = SerializedFileReader::new(Bytes::from(file.into_inner().unwrap())).unwrap();
        let statistics = reader.metadata().row_group(0).column(0).statistics().unwrap();
        let nulls = values.iter().filter(|value| value.is_none()).count() as u64;
        assert_eq!(statistics.null_count_opt(), Some(nulls));
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        rows.map(|row| match row.get_column_iter().next().unwrap().1.clone() {
            Field::Null => None,
            Field::Str(text) => Some(Value::Text(text)),
            Field::Bool(flag) => Some(Value::Bool(flag)),
            Field::UShort(number) => Some(Value::U16(number)),
            Field::UInt(number) => Some(Value::U32(number)),
            Field::ULong(number) => Some(Value::U64(number)),
            Field::Double(number) => Some(Value::F64(number)),
            other => panic!("unexpected {other:?}"),
        })
        .collect()
    }

    fn texts(words: &[Option<String>]) -> Vec<Option<Value>> {
        let values: Vec<_> = words.iter().map(|word| word.clone().map(Value::Text)).collect();
        round_trip(&values, Physical::BYTE_ARRAY, Some(LogicalType::String))
    }

    #[test]
    fn long_runs_and_many_words() {
        let mut words = vec![Some("a".to_owned()); 100_000];
        words.extend((0..70_000).map(|number| Some(format!("word {number}"))));
        words.extend(vec![Some(String::new()); 300]);
        let expected: Vec<_> = words.iter().map(|word| word.clone().map(Value::Text)).collect();
        assert_eq!(texts(&words), expected);
    }

    #[test]
    fn only_nulls() {
        for (physical, logical) in [
            (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            (Physical::BOOLEAN, None),
            (Physical::INT64, Some(LogicalType::integer(64, false))),
        ] {
            let values = vec![None; 1_000];
            assert_eq!(round_trip(&values, physical, logical), values);
        }
    }

    #[test]
    fn statistics_of_numbers_above_the_signed_range() {
        let mut runs = Runs::default();
        for number in [1, u64::MAX, 7] {
            runs.push(Some(&Value::U64(number)), 2);
        }
        let Statistics::Int64(bounds) = runs.statistics(Physical::INT64, 0) else { panic!() };
        assert_eq!((bounds.min_opt(), bounds.max_opt()), (Some(&1), Some(&-1)));
    }

    fn any_value(kind: Physical) -> BoxedStrategy<Option<Value>> {
        let value = match kind {
            Physical::BOOLEAN => any::<bool>().prop_map(Value::Bool).boxed(),
            Physical::INT32 => any::<u16>().prop_map(Value::U16).boxed(),
            Physical::INT64 => any::<u64>().prop_map(Value::U64).boxed(),
            Physical::DOUBLE => (-1e9..1e9).prop_map(Value::F64).boxed(),
            _ => "[a-c]{0,2}|\\PC{0,8}".prop_map(Value::Text).boxed(),
        };
        prop::option::of(value).boxed()
    }

    fn any_column() -> impl Strategy<Value = (Physical, Option<LogicalType>, Vec<Option<Value>>)> {
        prop_oneof![
            Just((Physical::BYTE_ARRAY, Some(LogicalType::String))),
            Just((Physical::BOOLEAN, None)),
            Just((Physical::INT32, Some(LogicalType::integer(16, false)))),
            Just((Physical::INT64, Some(LogicalType::integer(64, false)))),
            Just((Physical::DOUBLE, None)),
        ]
        .prop_flat_map(|(physical, logical)| {
            let run = (any_value(physical), 1_usize..20);
            prop::collection::vec(run, 1..40).prop_map(move |runs| {
                let values = runs.into_iter().flat_map(|(value, rows)| vec![value; rows]).collect();
                (physical, logical.clone(), values)
            })
        })
    }

    proptest! {
        #[test]
        fn values_of_every_type_with_nulls((physical, logical, values) in any_column()) {
            prop_assert_eq!(round_trip(&values, physical, logical), values);
        }
    }
}
