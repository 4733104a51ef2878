// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A column of words from a short list. A case repeats its choices in every row, so a column is
//! kept as runs and encoded as runs: the Parquet library would look every row's word up, in
//! each of about forty columns.

use std::collections::HashMap;
use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// zstd's own default; higher levels cost more time than they save space here.
pub(crate) const ZSTD_LEVEL: i32 = 3;

/// Each word once, and which of them fills which run of rows.
#[derive(Default)]
pub(crate) struct Words {
    words: Vec<String>,
    known: HashMap<String, u32>,
    runs: Vec<Run>,
}

struct Run {
    word: u32,
    rows: usize,
}

impl Words {
    /// Adds `rows` rows of `word`.
    pub(crate) fn push(&mut self, word: &str, rows: usize) {
        if let Some(last) = self.runs.last_mut()
            && self.words[last.word as usize] == word
        {
            last.rows += rows;
            return;
        }
        let word = self.number(word);
        self.runs.push(Run { word, rows });
    }

    /// Writes the rows as the row group's next column and empties it.
    pub(crate) fn write<W: Write + Send>(
        &mut self,
        out: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnDescPtr,
    ) -> Result<(), ParquetError> {
        let (chunk, close) = self.encode(column)?;
        *self = Words::default();
        out.append_column(&chunk, close)
    }

    /// Few words are found quicker by looking at each than by hashing.
    fn number(&mut self, word: &str) -> u32 {
        let near = self.words.len().min(16);
        if let Some(number) = self.words[..near].iter().position(|known| known == word) {
            return number as u32;
        }
        if let Some(&number) = self.known.get(word) {
            return number;
        }
        // A row group has far fewer rows than u32 has numbers.
        let number = self.words.len() as u32;
        self.words.push(word.to_owned());
        self.known.insert(word.to_owned(), number);
        number
    }

    /// A column chunk: one dictionary page, one data page.
    fn encode(&self, column: ColumnDescPtr) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let rows: usize = self.runs.iter().map(|run| run.rows).sum();
        let dictionary = self.dictionary();
        let runs = self.run_lengths();
        let (dictionary_size, runs_size) = (dictionary.len(), runs.len());

        let mut sink = TrackedWrite::new(Vec::with_capacity(dictionary_size + runs_size + 64));
        let mut pages = SerializedPageWriter::new(&mut sink);
        let dictionary = Page::DictionaryPage {
            buf: compress(&dictionary)?,
            num_values: self.words.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let dictionary = pages.write_page(CompressedPage::new(dictionary, dictionary_size))?;
        let data = Page::DataPage {
            buf: compress(&runs)?,
            num_values: rows as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let data = pages.write_page(CompressedPage::new(data, runs_size))?;
        let chunk = Bytes::from(sink.into_inner()?);

        let uncompressed = dictionary.uncompressed_size + data.uncompressed_size;
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_num_values(rows as i64)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(data.offset as i64)
            .set_statistics(self.statistics())
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

    /// Each word with its length before it (Parquet's PLAIN encoding of byte arrays).
    fn dictionary(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for word in &self.words {
            out.extend_from_slice(&(word.len() as u32).to_le_bytes());
            out.extend_from_slice(word.as_bytes());
        }
        out
    }

    /// The bit width, then for each run its length and its word's number (Parquet's RLE and
    /// bit-packing hybrid, of which only RLE is used).
    fn run_lengths(&self) -> Vec<u8> {
        let largest = self.words.len().saturating_sub(1) as u32;
        // Some readers reject a width of zero, which the format allows for a single word.
        let bit_width = (u32::BITS - largest.leading_zeros()).max(1);
        let byte_width = bit_width.div_ceil(8) as usize;
        let mut out = vec![bit_width as u8];
        for run in &self.runs {
            let mut header = (run.rows as u64) << 1;
            while header >= 0x80 {
                out.push(header as u8 | 0x80);
                header >>= 7;
            }
            out.push(header as u8);
            out.extend_from_slice(&run.word.to_le_bytes()[..byte_width]);
        }
        out
    }

    /// The first and the last word, so that a reader can pass over row groups.
    fn statistics(&self) -> Statistics {
        let bound = |word: Option<&String>| word.map(|word| ByteArray::from(word.as_str()));
        Statistics::byte_array(
            bound(self.words.iter().min()),
            bound(self.words.iter().max()),
            None,
            Some(0),
            false,
        )
    }
}

fn compress(bytes: &[u8]) -> Result<Bytes, ParquetError> {
    let compressed = zstd::bulk::compress(bytes, ZSTD_LEVEL)?;
    Ok(Bytes::from(compressed))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::record::RowAccessor;
    use parquet::schema::types::Type;
    use proptest::prelude::*;

    use super::*;

    /// Writes the words as the only column of a file and reads them back.
    fn there_and_back(words: &[String]) -> Vec<String> {
        let field = Type::primitive_type_builder("word", Physical::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_repetition(Repetition::REQUIRED)
            .build()
            .unwrap();
        let schema =
            Type::group_type_builder("row").with_fields(vec![Arc::new(field)]).build().unwrap();
        let mut file =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
        let column = file.schema_descr().column(0);
        let mut group = file.next_row_group().unwrap();
        let mut column_of_words = Words::default();
        for word in words {
            column_of_words.push(word, 1);
        }
        column_of_words.write(&mut group, column).unwrap();
        group.close().unwrap();
        let bytes = Bytes::from(file.into_inner().unwrap());
        let reader = SerializedFileReader::new(bytes).unwrap();
        reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().get_string(0).unwrap().clone())
            .collect()
    }

    #[test]
    fn long_runs_and_many_words_come_back() {
        let mut words = vec!["a".to_owned(); 100_000];
        words.extend((0..70_000).map(|number| format!("word {number}")));
        words.extend(vec![String::new(); 300]);
        assert_eq!(there_and_back(&words), words);
    }

    proptest! {
        #[test]
        fn any_words_come_back(words in prop::collection::vec("[a-c]{0,2}|\\PC{0,8}", 1..60)) {
            prop_assert_eq!(there_and_back(&words), words);
        }
    }
}
