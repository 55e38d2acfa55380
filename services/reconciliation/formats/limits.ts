/** Every limit of the parsers, with its reason. Memory of an import is bounded by them, whatever the file. */
import { MAPPING_BOUNDS } from "../../bus/messages/csv-mapping.ts";

const KIBI = 1_024;
const MEBI = 1_024 * KIBI;
const GIBI = 1_024 * MEBI;

export const FORMAT_LIMITS = {
  /** What a format is detected from: the header of every known format is far shorter. */
  headCharacters: 64 * KIBI,
  /** One line of text or one CSV record; the longest genuine ones, with metadata columns, have some ten thousand characters. */
  lineCharacters: MEBI,
  /** Free text of a line: camt allows 140 characters many times over, and people read it on one page. */
  textCharacters: 4_000,
  /** A reference of any provider; the longest are URLs of about 200 characters. A longer one makes the row malformed. */
  referenceCharacters: 500,
  /** A line's further fields: the widest known report has about 100 columns. */
  detailFields: 128,
  detailNameCharacters: 128,
  detailCharacters: 1_000,
  /** The raw text of a malformed row: enough to find it in the file. */
  rawCharacters: 2_000,
  /** Of an amount in minor units: any number of so many digits fits into PostgreSQL's int8. */
  amountDigits: 18,
  /** Physical lines of one CSV record: a genuine text field has a few line breaks, a quote that is never closed all of them. */
  recordLines: 200,
  /** Of one header: the widest known report has about 100, and a merchant can add some 50 keys of metadata to each of its objects. */
  columns: 1_000,
  /** Lines before the header of a CSV file: a mapping may have its header row there. */
  preambleLines: MAPPING_BOUNDS.headerRow,
  /** Groups of one file (batch or payout, and currency) that are added up for control totals; a year has some 400 batches. */
  controlGroups: 10_000,
  /** Statements or notifications of one file; some banks send one for each entry. Each is remembered by its hash. */
  statements: 100_000,
  /** Rows whose own amounts do not add up and that are reported one by one; a file with more of them is held too. */
  rowTotals: 100,
  /** Rows that wait for the first date that shows whether the day or the month is first. */
  heldRows: 20_000,
  /** The text in which the delimiter of a file without a header row is searched. */
  firstCharacters: 1_024,
  /** Columns that the refusal of an unknown header names. */
  namedColumns: 12,
  /** A parser receives a chunk of text in parts of this size, so that few parsed records wait to be read. */
  chunkCharacters: 64 * KIBI,

  /** XML: camt nests about 15 elements deep. */
  xmlDepth: 64,
  /** XML between two tags, the tags included: no element of camt holds more than a few hundred characters. */
  xmlTokenCharacters: 64 * KIBI,
  /** One entry with its transactions, in characters of the file; it is held in memory. */
  entryCharacters: 16 * MEBI,
  /** Transactions of one batch entry; a bank splits a collection long before. */
  entryTransactions: 10_000,
  /** Balances of one statement; with one each day and type for a year there are about 1 500. */
  statementBalances: 4_096,

  /** A compressed archive is held in memory; 32 MiB of zipped XML are about half a gigabyte of statements. */
  archiveBytes: 32 * MEBI,
  /** Files of one archive: one each day and account is far less. */
  archiveEntries: 1_000,
  /** All files of an archive together, uncompressed: as much as an upload may have. */
  archiveOutputBytes: 2 * GIBI,
  /** How many times larger than the archive its content may be: repetitive XML reaches about 100, a zip bomb 1 000 and more. */
  archiveRatio: 250,
  /** Below this size the ratio is not checked: small files of repeated text are harmless. */
  archiveRatioFromBytes: 4 * MEBI,
} as const;
