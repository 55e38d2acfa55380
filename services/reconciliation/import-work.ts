/**
 * Carries out an import: bytes → text → records → batches of lines, in one transaction that stores everything or nothing. One
 * batch is written while the next is read. If the process ends in between, the lease of the import expires, and another attempt
 * begins it again.
 */
import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { NoCopyAnswersError } from "../bus/direct-reader.ts";
import type { FileRefusal } from "../bus/messages/statement-formats.ts";
import type { Failures } from "../bus/outage.ts";
import { FileLostError } from "../bus/statement-files.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { WorkStoppedError } from "../db/stoppable.ts";
import { forRequest } from "../runtime/log.ts";
import { fileRows } from "./file-rows.ts";
import type { CsvMapping } from "./formats/csv/mapping.ts";
import {
  type ControlTotal,
  type MalformedLine,
  type ParseOptions,
  type StatementFormat,
  type StatementHeader,
  type StatementLine,
  type StatementRecord,
  StatementRefusedError,
} from "./formats/format.ts";
import { moved, NEXT_FILE } from "./formats/records.ts";
import { type Days, joined, withDay } from "./formats/statement-days.ts";
import { statementText } from "./formats/statement-text.ts";
import { IMPORT_LIMITS } from "./limits.ts";
import { lineIdentity } from "./line-identity.ts";
import { LineWriter, type WritableLine, writableLine } from "./line-writer.ts";
import { isSameAccount } from "./same-account.ts";
import { isDiskFull } from "./space.ts";
import * as sql from "./sql/import-work.ts";
import { lockAccountOfImport, searchByIndex } from "./sql/store-lines.ts";

export interface ImportDeps {
  /** For statements that take milliseconds. */
  readonly database: Database;
  /** For statements over a whole file. */
  readonly longDatabase: Database;
  /** The bytes of an uploaded file, from the beginning. */
  readonly openFile: (objectName: string) => AsyncIterable<Uint8Array>;
  readonly formatNamed: (name: string) => StatementFormat | undefined;
  /** Aborted when the process stops: an import that is under way then waits again. */
  readonly stopping?: AbortSignal;
  /** While it is true no import begins, and an import that is under way waits again. */
  readonly isShortOfSpace?: () => boolean;
  /** `IMPORT_LIMITS.silentMs`, unless a test shortens it. */
  readonly silentMs?: number;
  /** Receives an error that says nothing about the file: another attempt follows. */
  readonly failures: Pick<Failures, "failed">;
}

/** Another attempt has overtaken this one, or the import was withdrawn. */
class ImportLostError extends Error {}
/** The process stops, or the disk is short of space. */
class ImportStoppedError extends Error {}
/** No line of the file is stored until a person releases it. */
class ImportHeldError extends Error {
  readonly code: string;

  constructor(code: string, sentence: string) {
    super(sentence);
    this.code = code;
  }
}

/**
 * Takes the next import that waits and carries it out. False when there is none, or no space for it, or when it could not be
 * carried out now.
 */
export async function importNext(deps: ImportDeps): Promise<boolean> {
  if (deps.isShortOfSpace?.() === true || !(await sql.hasWaitingImport(deps.database))) return false;
  const attempt = randomUUID();
  const { leaseMs } = IMPORT_LIMITS;
  const taken = await deps.database.begin((tx) => sql.takeImport(tx, { attempt, leaseMs }));
  if (taken === undefined) return false;
  return await forRequest(taken.request_id ?? undefined, async () => {
    try {
      await carryOut(deps, taken, attempt);
      return true;
    } catch (error) {
      deps.failures.failed(error, { importId: taken.import_id, attempts: taken.attempts });
      return false;
    }
  });
}

/** Rejects with an error that says nothing about the file. */
async function carryOut(deps: ImportDeps, taken: sql.TakenImport, attempt: string): Promise<void> {
  const work = new ImportWork(deps, taken, attempt);
  try {
    if (taken.attempts > IMPORT_LIMITS.attempts) await work.refuse(FAILED);
    else await work.run();
  } catch (error) {
    if (error instanceof StatementRefusedError) await work.refuse(error);
    else if (error instanceof FileLostError) await work.refuse(LOST);
    else if (error instanceof ImportHeldError) await work.hold(error);
    else if (error instanceof ImportStoppedError || error instanceof WorkStoppedError)
      await sql.returnImport(deps.database, { importId: taken.import_id, attempt });
    else if (error instanceof NoCopyAnswersError) {
      // The bus elects a leader or is unreachable. The file is fine, so the import need not wait until its lease expires.
      await sql.returnImport(deps.database, { importId: taken.import_id, attempt });
      throw error;
    } else if (isDiskFull(error)) {
      await sql.uncountAttempt(deps.database, { importId: taken.import_id, attempt });
      throw error;
    } else if (!(error instanceof ImportLostError)) throw error;
  }
}

const LOST = { code: "file_lost" satisfies FileRefusal, message: "The file is no longer stored; upload it again." };
const FAILED = {
  code: "import_failed" satisfies FileRefusal,
  message:
    "The import has failed several times; read the log of the reconciliation service, then upload the file again.",
};

class ImportWork {
  readonly #deps: ImportDeps;
  readonly #taken: sql.TakenImport;
  readonly #key: sql.AttemptKey;
  readonly #totals: ControlTotal[] = [];
  readonly #accounts = new Set<string>();
  /** The days that the headers name; `#lineDays` are those of the lines. */
  #days: Days | undefined;
  #lineDays: Days | undefined;
  #hasPayouts = false;
  #lines: WritableLine[] = [];
  #characters = 0;
  #malformed: MalformedLine[] = [];
  #firstMalformed: MalformedLine | undefined;
  /** The batch that is being written while the next is read. */
  #written = Promise.resolve();
  #writer: LineWriter | undefined;
  #readBytes = 0;
  #records = 0;
  #malformedCount = 0;
  /** When the lease began or was last renewed. */
  #reportedAtMs = performance.now();

  constructor(deps: ImportDeps, taken: sql.TakenImport, attempt: string) {
    this.#deps = deps;
    this.#taken = taken;
    this.#key = { importId: taken.import_id, attempt };
  }

  async run(): Promise<void> {
    const { mapping, time_zone: timeZone, currency } = this.#taken;
    const format = this.#format();
    await sql.clearMalformed(this.#deps.longDatabase, this.#key.importId);
    const options = {
      mapping: (mapping ?? undefined) as CsvMapping | undefined,
      timeZone: timeZone ?? undefined,
      currency: currency ?? undefined,
    };
    const records = this.#parsed(format, options);
    await this.#deps.longDatabase.begin(async (tx) => {
      const writer = await this.#writeAll(tx, records);
      const reason = this.#whyHeld();
      if (reason !== undefined) throw new ImportHeldError(reason.code, reason.detail);
      await this.#end(tx, async () => {
        const counts = (await writer?.end()) ?? { linesNew: 0, linesKnown: 0 };
        // A file whose headers name no days covers the days of its lines.
        const facts = this.#facts(format.version, this.#days ?? this.#lineDays);
        return { ...facts, status: "imported", code: null, detail: null, ...counts };
      });
    });
  }

  #parsed(format: StatementFormat, options: ParseOptions): AsyncIterable<StatementRecord> {
    const { object_name: objectName, encoding } = this.#taken;
    const parse = (bytes: AsyncIterable<Uint8Array>): AsyncIterable<StatementRecord> =>
      format.parse(statementText(this.#withLease(bytes), encoding), options);
    return fileRows(this.#counted(this.#deps.openFile(objectName)), parse, moved, NEXT_FILE);
  }

  /** Nothing of a refused file stays stored. */
  async refuse({ code, message }: { readonly code: string; readonly message: string }): Promise<void> {
    await this.#endWithout({ ...this.#facts(0), status: "refused", code, detail: message });
  }

  /** Nothing of a held file is stored yet. */
  async hold({ code, message }: ImportHeldError): Promise<void> {
    await this.#endWithout({ ...this.#facts(this.#format().version), status: "held", code, detail: message });
  }

  async #endWithout(end: Omit<sql.ImportEnd, "linesNew" | "linesKnown">): Promise<void> {
    await this.#deps.longDatabase.begin(async (tx) => {
      await this.#end(tx, async () => {
        await sql.clearMalformed(tx, this.#key.importId);
        return { ...end, linesNew: 0, linesKnown: 0 };
      });
    });
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

  #requireNotStopped(): void {
    const { stopping, isShortOfSpace } = this.#deps;
    if (stopping?.aborted === true || isShortOfSpace?.() === true) throw new ImportStoppedError();
  }

  /** Renews the lease also while a file has no row for a long time: blank lines, or text between the entries. */
  async *#withLease(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes) {
      this.#requireNotStopped();
      const { silentMs = IMPORT_LIMITS.silentMs } = this.#deps;
      if (performance.now() > this.#reportedAtMs + silentMs) {
        await this.#written;
        await this.#report([], true);
        await this.#writer?.keep();
      }
      yield chunk;
    }
  }

  /** One batch is written while the next is read. Undefined when the file has no line to store. */
  async #writeAll(tx: Transaction, records: AsyncIterable<StatementRecord>): Promise<LineWriter | undefined> {
    const writeNext = async (): Promise<void> => {
      await this.#written;
      this.#requireNotStopped();
      const [lines, malformed] = [this.#lines, this.#malformed];
      [this.#lines, this.#malformed, this.#characters] = [[], [], 0];
      const write = async (): Promise<void> => {
        await this.#report(malformed);
        // A transaction that has the account and sends no statement for a long time counts as hung.
        if (lines.length === 0 || this.#isHeldForAccount()) return await this.#writer?.keep();
        this.#writer ??= await this.#beginWriting(tx);
        await this.#writer.write(lines);
      };
      this.#written = write();
      // `#written` is awaited before the next batch, and at the end.
      this.#written.catch(() => undefined);
    };
    try {
      for await (const record of records) {
        if (record.type === "next_file") {
          await writeNext();
          await this.#written;
          await this.#writer?.nextFile();
          continue;
        }
        this.#add(record);
        const rows = this.#lines.length + this.#malformed.length;
        const isFull = rows >= IMPORT_LIMITS.linesPerBatch || this.#characters >= IMPORT_LIMITS.charactersPerBatch;
        if (isFull) await writeNext();
        // The connection sends and receives only between two turns of the event loop.
        else if (this.#records % IMPORT_LIMITS.recordsPerTurn === 0) await turn();
      }
      await writeNext();
    } finally {
      // Nothing of the transaction is under way when it ends.
      await this.#written.catch(() => undefined);
    }
    await this.#written;
    return this.#writer;
  }

  async #beginWriting(tx: Transaction): Promise<LineWriter> {
    const { importId } = this.#key;
    const { account_id: accountId, organization_id: organizationId } = this.#taken;
    const lock = { accountId, waitMs: IMPORT_LIMITS.leaseMs / 3, hungMs: IMPORT_LIMITS.leaseMs };
    while (!(await lockAccountOfImport(tx, lock))) await this.#report([], true);
    // Another process may have taken over the import, and had the account before.
    await this.#report([], true);
    await searchByIndex(tx, true);
    return new LineWriter(tx, { importId, organizationId, accountId });
  }

  #add(record: Exclude<StatementRecord, { readonly type: "next_file" }>): void {
    this.#records += 1;
    if (record.type === "line") this.#addLine(record.line);
    else if (record.type === "malformed") {
      this.#malformed.push(record.malformed);
      this.#malformedCount += 1;
      this.#characters += record.malformed.raw.length;
      this.#firstMalformed ??= record.malformed;
      // `#records` counts each record, so the others are lines, headers and totals.
      const isMost = this.#malformedCount > this.#records - this.#malformedCount;
      if (this.#malformedCount > IMPORT_LIMITS.mostlyMalformed && isMost) throw mostlyMalformed(this.#firstMalformed);
    } else if (record.type === "total") {
      if (this.#totals.length >= IMPORT_LIMITS.totals) throw tooMany("control totals", IMPORT_LIMITS.totals);
      this.#totals.push(record.total);
    } else this.#addHeader(record.header);
  }

  #addLine(line: StatementLine): void {
    const writable = writableLine(line, lineIdentity(line, this.#format().referenceScope ?? "year"));
    this.#lines.push(writable);
    this.#characters += writable.fields.length;
    this.#lineDays = withDay(this.#lineDays, line.bookedOn);
    this.#hasPayouts ||= line.kind === "payout" || line.payoutReference !== "";
    if (line.account !== "") this.#addAccount(line.account);
  }

  #addHeader({ account, fromDate, toDate }: StatementHeader): void {
    if (account !== "") this.#addAccount(account);
    if (fromDate !== undefined && toDate !== undefined) this.#days = joined(this.#days, { from: fromDate, to: toDate });
  }

  #addAccount(account: string): void {
    if (this.#accounts.size < IMPORT_LIMITS.namedAccounts) this.#accounts.add(account);
  }

  /** Stores the malformed rows. Renews the lease and stores the progress from time to time, or when `isDue`. */
  async #report(malformed: readonly MalformedLine[], isDue = false): Promise<void> {
    const nowMs = performance.now();
    if (!isDue && malformed.length === 0 && nowMs < this.#reportedAtMs + IMPORT_LIMITS.progressMs) return;
    this.#reportedAtMs = nowMs;
    const progress = { readBytes: this.#readBytes, records: this.#records, malformed: this.#malformedCount };
    await this.#deps.database.begin(async (tx) => {
      const key = { ...this.#key, leaseMs: IMPORT_LIMITS.leaseMs };
      if (!(await sql.keepImport(tx, key, progress))) throw new ImportLostError();
      if (malformed.length > 0) await sql.insertMalformed(tx, key.importId, malformed);
    });
  }

  /** A file of another account, or one whose totals do not balance, waits for a person. */
  #whyHeld(): { readonly code: FileRefusal; readonly detail: string } | undefined {
    const { reference, is_released: isReleased } = this.#taken;
    if (isReleased) return undefined;
    const other = this.#otherAccount();
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

  #otherAccount(): string | undefined {
    return [...this.#accounts].find((account) => !isSameAccount(account, this.#taken.reference));
  }

  /** The file names another account. The import will be held, so its lines need not be written. */
  #isHeldForAccount(): boolean {
    return !this.#taken.is_released && this.#otherAccount() !== undefined;
  }

  #facts(formatVersion: number, days = this.#days) {
    const totals = this.#totals.map(({ name, currency, statedMinor, computedMinor }) => ({
      name,
      currency,
      stated_minor: statedMinor.toString(),
      computed_minor: computedMinor.toString(),
    }));
    const [fromDate, toDate] = [days?.from ?? null, days?.to ?? null];
    return { totals, formatVersion, fromDate, toDate, hasPayouts: this.#hasPayouts };
  }

  /** Throws `ImportLostError` when another attempt has the import. */
  async #end(tx: Transaction, end: () => Promise<sql.ImportEnd>): Promise<void> {
    if (!(await sql.lockImport(tx, this.#key))) throw new ImportLostError();
    await sql.endImport(tx, this.#key, await end());
  }
}

function mostlyMalformed({ position, reason }: MalformedLine): StatementRefusedError {
  const sentence = `More than ${IMPORT_LIMITS.mostlyMalformed} rows of the file cannot be read, and fewer can; of the first one, line ${position}, the reason is: ${reason.replace(/\.$/, "")}. Declare the format, the encoding or the mapping that the file has.`;
  return new StatementRefusedError("not_this_format", sentence);
}

function tooMany(what: string, most: number): StatementRefusedError {
  return new StatementRefusedError("too_large", `The file has more than ${most} ${what}; split it.`);
}
