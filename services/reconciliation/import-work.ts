/**
 * Carries out an import: bytes → text → records → staging → one transaction that stores everything or nothing. A process
 * that ends in between leaves an import whose lease passes; the next one begins it again.
 */
import { randomUUID } from "node:crypto";
import { FileLostError } from "../bus/statement-files.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { archivedRecords, isArchive } from "./formats/archive.ts";
import type { CsvMapping } from "./formats/csv/mapping.ts";
import { decode } from "./formats/decode.ts";
import {
  type ControlTotal,
  type MalformedLine,
  type ParseOptions,
  type StatementFormat,
  type StatementHeader,
  type StatementRecord,
  StatementRefusedError,
} from "./formats/format.ts";
import { IMPORT_LIMITS } from "./limits.ts";
import { IDENTITY_VERSION, lineIdentity } from "./line-identity.ts";
import { peeked } from "./peeked.ts";
import * as sql from "./sql/imports.ts";
import {
  type AttemptKey,
  clearAttempts,
  clearStaging,
  copyToStaging,
  insertMalformed,
  stagingRow,
} from "./sql/staging.ts";

export interface ImportDeps {
  /** For statements of milliseconds. */
  readonly database: Database;
  /** For the statements over a whole file. */
  readonly longDatabase: Database;
  /** The bytes of an uploaded file, from the beginning. */
  readonly openFile: (objectName: string) => AsyncIterable<Uint8Array>;
  readonly formatNamed: (name: string) => StatementFormat | undefined;
  /** Aborted when the process stops: what is under way goes back to those that wait. */
  readonly stopping?: AbortSignal;
}

/** Another attempt has overtaken this one, or the import was withdrawn. */
class ImportLostError extends Error {}
/** The process stops. */
class ImportStoppedError extends Error {}

/** Takes the next import that waits and carries it out. False when there is none. */
export async function importNext(deps: ImportDeps): Promise<boolean> {
  const attempt = randomUUID();
  const { leaseMs } = IMPORT_LIMITS;
  const taken = await deps.database.begin((tx) => sql.takeImport(tx, { attempt, leaseMs }));
  if (taken === undefined) return false;
  const work = new ImportWork(deps, taken, attempt);
  try {
    if (taken.attempts > IMPORT_LIMITS.attempts) await work.refuse(FAILED);
    else await work.run();
  } catch (error) {
    if (error instanceof StatementRefusedError) await work.refuse(error);
    else if (error instanceof FileLostError) await work.refuse(LOST);
    else if (error instanceof ImportStoppedError)
      await sql.returnImport(deps.database, { importId: taken.import_id, attempt });
    else if (!(error instanceof ImportLostError)) throw error;
  } finally {
    await work.clear();
  }
  return true;
}

const LOST = { code: "file_lost", message: "The file is no longer stored; upload it again." };
const FAILED = {
  code: "import_failed",
  message:
    "The import has failed several times; read the log of the reconciliation service, then upload the file again.",
};

class ImportWork {
  readonly #deps: ImportDeps;
  readonly #taken: sql.TakenImport;
  readonly #key: AttemptKey;
  readonly #totals: ControlTotal[] = [];
  readonly #accounts = new Set<string>();
  #days: { from: string; to: string } | undefined;
  #rows: string[] = [];
  #rowCharacters = 0;
  #malformed: MalformedLine[] = [];
  #readBytes = 0;
  #records = 0;
  #malformedCount = 0;

  constructor(deps: ImportDeps, taken: sql.TakenImport, attempt: string) {
    this.#deps = deps;
    this.#taken = taken;
    this.#key = { importId: taken.import_id, attempt };
  }

  async run(): Promise<void> {
    const { mapping, time_zone: timeZone, currency } = this.#taken;
    const format = this.#format();
    await this.#deps.longDatabase.begin((tx) => clearAttempts(tx, this.#key.importId));
    const options = {
      mapping: (mapping ?? undefined) as CsvMapping | undefined,
      timeZone: timeZone ?? undefined,
      currency: currency ?? undefined,
    };
    for await (const record of await this.#parsed(format, options)) {
      this.#add(record);
      if (this.#rows.length >= IMPORT_LIMITS.rowsPerCopy || this.#rowCharacters >= IMPORT_LIMITS.charactersPerCopy) {
        await this.#flush();
      }
    }
    await this.#flush();
    await this.#store(format.version);
  }

  /** Of an archive the records of all its files. */
  async #parsed(format: StatementFormat, options: ParseOptions): Promise<AsyncIterable<StatementRecord>> {
    const { object_name: objectName, encoding } = this.#taken;
    const file = await peeked(this.#counted(this.#deps.openFile(objectName)));
    const parse = (bytes: AsyncIterable<Uint8Array>): AsyncIterable<StatementRecord> =>
      format.parse(decode(bytes, encoding), options);
    return isArchive(file.head) ? archivedRecords(file.bytes, parse) : parse(file.bytes);
  }

  /** Nothing of a refused file stays. */
  async refuse({ code, message }: { readonly code: string; readonly message: string }): Promise<void> {
    await this.#end(async (tx) => {
      await clearAttempts(tx, this.#key.importId);
      return { ...this.#facts(0), status: "refused", code, detail: message, linesNew: 0, linesKnown: 0 };
    });
  }

  /** What the attempt has staged is of no use once it has ended. */
  async clear(): Promise<void> {
    await clearStaging(this.#deps.longDatabase, this.#key);
  }

  #format(): StatementFormat {
    const { format: name } = this.#taken;
    const format = this.#deps.formatNamed(name);
    if (format === undefined) throw new Error(`There is no statement format ${name}.`);
    return format;
  }

  async *#counted(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes) {
      this.#readBytes += chunk.length;
      yield chunk;
    }
  }

  #add(record: StatementRecord): void {
    this.#records += 1;
    if (record.type === "line") {
      const { line } = record;
      const identity = lineIdentity(line, this.#format().referenceScope ?? "year");
      const row = stagingRow(this.#key, { line, identity });
      this.#rows.push(row);
      this.#rowCharacters += row.length;
      if (line.account !== "") this.#addAccount(line.account);
    } else if (record.type === "malformed") {
      this.#malformed.push(record.malformed);
      this.#malformedCount += 1;
      this.#rowCharacters += record.malformed.raw.length;
    } else if (record.type === "total") {
      if (this.#totals.length >= IMPORT_LIMITS.totals) throw tooMany("control totals", IMPORT_LIMITS.totals);
      this.#totals.push(record.total);
    } else this.#addHeader(record.header);
  }

  #addHeader({ account, fromDate, toDate }: StatementHeader): void {
    if (account !== "") this.#addAccount(account);
    if (fromDate === undefined || toDate === undefined) return;
    const known = this.#days ?? { from: fromDate, to: toDate };
    this.#days = { from: fromDate < known.from ? fromDate : known.from, to: toDate > known.to ? toDate : known.to };
  }

  #addAccount(account: string): void {
    if (this.#accounts.size < IMPORT_LIMITS.namedAccounts) this.#accounts.add(account);
  }

  async #flush(): Promise<void> {
    if (this.#deps.stopping?.aborted === true) throw new ImportStoppedError();
    const { database } = this.#deps;
    const [rows, malformed] = [this.#rows, this.#malformed];
    this.#rows = [];
    this.#malformed = [];
    this.#rowCharacters = 0;
    if (rows.length > 0) await copyToStaging(database, rows);
    const progress = { readBytes: this.#readBytes, records: this.#records, malformed: this.#malformedCount };
    await database.begin(async (tx) => {
      const key = { ...this.#key, leaseMs: IMPORT_LIMITS.leaseMs };
      if (!(await sql.keepImport(tx, key, progress))) throw new ImportLostError();
      if (malformed.length > 0) await insertMalformed(tx, key.importId, malformed);
    });
  }

  async #store(formatVersion: number): Promise<void> {
    const { is_released: isReleased } = this.#taken;
    const facts = this.#facts(formatVersion);
    const reason = isReleased ? undefined : this.#whyHeld();
    await this.#end(async (tx) => {
      if (reason !== undefined) {
        await clearAttempts(tx, this.#key.importId);
        return { ...facts, status: "held", ...reason, linesNew: 0, linesKnown: 0 };
      }
      const { linesNew, linesKnown } = await sql.storeLines(tx, { ...this.#key, identityVersion: IDENTITY_VERSION });
      return { ...facts, status: "imported", code: null, detail: null, linesNew, linesKnown };
    });
  }

  /** A file of another account, or one whose totals do not balance, waits for a person. */
  #whyHeld(): { readonly code: string; readonly detail: string } | undefined {
    const { reference } = this.#taken;
    const other = [...this.#accounts].find((account) => comparableAccount(account) !== comparableAccount(reference));
    if (other !== undefined) {
      const detail = `The file names the account ${JSON.stringify(other)}, and this account is ${JSON.stringify(reference)}. Withdraw the import, or release it with a reason.`;
      return { code: "other_account", detail };
    }
    const wrong = this.#totals.find(({ statedMinor, computedMinor }) => statedMinor !== computedMinor);
    if (wrong === undefined) return undefined;
    const { name, currency, statedMinor, computedMinor } = wrong;
    const detail = `The total "${name}" is ${statedMinor} ${currency} in minor units, and the lines add up to ${computedMinor}. Ask the provider for a complete file, or release the import with a reason.`;
    return { code: "batch_total_mismatch", detail };
  }

  #facts(formatVersion: number) {
    const totals = this.#totals.map(({ name, currency, statedMinor, computedMinor }) => ({
      name,
      currency,
      stated_minor: statedMinor.toString(),
      computed_minor: computedMinor.toString(),
    }));
    return { totals, formatVersion, fromDate: this.#days?.from ?? null, toDate: this.#days?.to ?? null };
  }

  /** Everything that the end writes is one transaction, of the attempt that has the import. */
  async #end(write: (tx: Transaction) => Promise<sql.ImportEnd>): Promise<void> {
    await this.#deps.longDatabase.begin(async (tx) => {
      if (!(await sql.lockImport(tx, this.#key))) throw new ImportLostError();
      await sql.endImport(tx, this.#key, await write(tx));
    });
  }
}

/** Letter case and spaces do not count: an IBAN is written in groups. */
const comparableAccount = (account: string): string => account.replaceAll(/\s/g, "").toUpperCase();

function tooMany(what: string, most: number): StatementRefusedError {
  return new StatementRefusedError("too_large", `The file has more than ${most} ${what}; split it.`);
}
