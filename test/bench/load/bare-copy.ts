/**
 * The control of imports in a separate process: each request copies rows of a statement into a table with one COPY.
 * Arguments: the database, the table, how many rows.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { closeDatabase, openDatabase } from "../../../services/db/pool.ts";
import { IMPORT_LIMITS } from "../../../services/reconciliation/limits.ts";
import { rowOf, STATEMENT_ACCOUNT } from "../statement-files.ts";
import { answerWithTime } from "./timed-answers.ts";

const [url = "", table = "", countText = ""] = process.argv.slice(2);
const count = Number(countText);
const database = openDatabase({ url, maxConnections: 1, longestWorkMs: IMPORT_LIMITS.longestWorkMs });
const CHUNK_CHARACTERS = 128 * 1_024;
let copies = 0;

function* copyText(prefix: string): Iterable<string> {
  let text = "";
  for (let n = 1; n <= count; n += 1) {
    const { providerReference, merchantReference, amountMinor, day } = rowOf(prefix, n);
    const fingerprint = createHash("sha256").update(providerReference).digest("hex");
    text += `1\t1\t\\\\x${fingerprint}\t1\t0\tpayment\tpayment\t${amountMinor}\tEUR\t${day}\t${day}T10:00:00.000Z\t${providerReference}\t\t${merchantReference}\t\t\t${STATEMENT_ACCOUNT}\t\t{}\n`;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = "";
  }
  yield text;
}

await answerWithTime({
  async work() {
    copies += 1;
    const copy = await database`
      copy ${database(table)} (organization_id, account_id, fingerprint, fingerprint_version, ordinal, kind, provider_type,
        amount_minor, currency, booked_on, occurred_at, provider_reference, payment_reference, merchant_reference,
        payout_reference, terminal, account, text, details) from stdin`.writable();
    await pipeline(Readable.from(copyText(`bare${copies}`)), copy);
  },
  stop: () => closeDatabase(database),
});
