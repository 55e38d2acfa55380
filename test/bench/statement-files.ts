/** Statements of any length whose bytes are made while they are read, and the same rows for the control. */

/** The account that the rows name. */
export const STATEMENT_ACCOUNT = "acct_1";
const HEADER = "line,payment_id,reference,account,amount,currency,paid_at\n";
/** The rows are spread over `DAYS` days from this one. */
export const FIRST_DAY = "2026-03-01";
const DAYS = 28;
export const LAST_DAY = "2026-03-28";
const FIRST_AMOUNT_MINOR = 1_000;
const AMOUNTS = 5_000;
/** The object store delivers chunks of about this size. */
const CHUNK_CHARACTERS = 128 * 1_024;

export interface StatementFile {
  /** The prefix of each row's reference: files with the same prefix have the same rows. */
  readonly prefix: string;
  readonly rows: number;
  /** Another edition has the same rows in other bytes. */
  readonly edition: number;
}

/** The name of the file in the object store describes its content. */
export const objectName = ({ prefix, rows, edition }: StatementFile): string => `${prefix}.${rows}.${edition}`;

/** The values of row `n`, from 1 on; the SQL below makes the same values. */
export const rowOf = (prefix: string, n: number) => ({
  providerReference: `${prefix}-${n}`,
  merchantReference: `int_${prefix}-${n}`,
  amountMinor: FIRST_AMOUNT_MINOR + (n % AMOUNTS),
  day: `${FIRST_DAY.slice(0, -2)}${String(1 + (n % DAYS)).padStart(2, "0")}`,
});

/** The same values as SQL, from a column `n`. */
export const ROW_SQL = {
  amountMinor: `${FIRST_AMOUNT_MINOR} + n % ${AMOUNTS}`,
  day: `date '${FIRST_DAY}' + (n % ${DAYS})::int`,
} as const;

/** The bytes of the file with this name. */
export async function* fileBytes(name: string): AsyncIterable<Uint8Array> {
  const [prefix = "", rows = "", edition = ""] = name.split(".");
  const count = Number(rows);
  // Editions differ only in the column of line numbers, which is no part of a line's identity.
  const firstLine = Number(edition) * count;
  let text = HEADER;
  for (let n = 1; n <= count; n += 1) {
    const { providerReference, merchantReference, amountMinor, day } = rowOf(prefix, n);
    const amount = `${Math.trunc(amountMinor / 100)}.${String(amountMinor % 100).padStart(2, "0")}`;
    text += `${firstLine + n},${providerReference},${merchantReference},${STATEMENT_ACCOUNT},${amount},EUR,${day}T10:00:00.000Z\n`;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield Buffer.from(text);
    text = "";
  }
  yield Buffer.from(text);
}
