/**
 * Tests of mappings: the service reads a whole file in the background, counts its rows and stores only the result. The reply
 * comes when the test is done, or after a moment while the test continues. If the process ends, the test counts as failed.
 */
import { malformedReason } from "../bus/malformed-reasons.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/statement-mappings.ts";
import { mappingTestSchema } from "../bus/messages/statement-mappings.ts";
import type { Handler } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { Database } from "../db/pool.ts";
import { storedText } from "../db/stored-text.ts";
import { within } from "../runtime/repeat.ts";
import { type MalformedLine, type StatementLine, StatementRefusedError } from "./formats/format.ts";
import { MAPPING_LIMITS } from "./limits.ts";
import { type FileDeps, findMappedFile, type MappedFile, rowsOf } from "./mappings.ts";
import * as sql from "./sql/mapping-tests.ts";

export interface MappingTestDeps extends FileDeps {
  /** The tests of this process. */
  readonly running: Set<Promise<void>>;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  /** `MAPPING_LIMITS.testProgressMs`, unless a test shortens it. */
  readonly progressMs?: number;
}

/** Refuses with `permission_denied`, `not_found`, `invalid_request`, `busy`, or `conflict` when the file's bytes are deleted. */
export const testStatementMapping: Handler<MappingTestDeps, typeof bus.testStatementMapping> = async (
  deps,
  request,
) => {
  const { caller } = request;
  requirePermission(caller, "reconciliation.manage");
  const { database, running } = deps;
  const file = await findMappedFile(database, request);
  if (running.size >= MAPPING_LIMITS.testsAtOnce)
    throw new RefusedError({ code: "busy", retryAfterMs: MAPPING_LIMITS.testRetryMs });
  const { importId, mappingId } = file;
  const { organizationId, userId: startedBy } = caller;
  const testId = await sql.insertMappingTest(database, { organizationId, importId, mappingId, startedBy });
  const done = new MappingTest(deps, file, testId).run();
  running.add(done);
  void done.finally(() => running.delete(done));
  await within(done, MAPPING_LIMITS.testAnswerMs);
  return await readTest(database, { organizationId, testId });
};

/** Refuses with `permission_denied` or `not_found`. */
export const getMappingTest: Handler<Pick<MappingTestDeps, "database">, typeof bus.getMappingTest> = async (
  { database },
  { caller, testId },
) => {
  requirePermission(caller, "reconciliation.manage");
  return await readTest(database, { organizationId: caller.organizationId, testId });
};

async function readTest(
  database: Database,
  key: { readonly organizationId: number; readonly testId: number },
): Promise<{ readonly test: bus.MappingTest }> {
  const row = existing(await sql.getMappingTest(database, { ...key, lostAfterMs: MAPPING_LIMITS.testLostMs }));
  return { test: testOf(row) };
}

class StoppedError extends Error {}

class MappingTest {
  readonly #deps: MappingTestDeps;
  readonly #file: MappedFile;
  readonly #testId: number;
  readonly #totals = new Map<string, bus.MappingTest["totals"][number]>();
  readonly #malformedRows: StoredRow[] = [];
  readonly #counts = { readBytes: 0, lines: 0, malformed: 0, skipped: 0 };
  #days: { from: string; to: string } | undefined;
  #writtenAtMs = performance.now();

  constructor(deps: MappingTestDeps, file: MappedFile, testId: number) {
    this.#deps = deps;
    this.#file = file;
    this.#testId = testId;
  }

  /** Never rejects: the end of the test is stored, or the test counts as lost. */
  async run(): Promise<void> {
    try {
      await this.#end(await this.#read());
    } catch (error) {
      this.#deps.log.error({ err: error, testId: this.#testId }, "the end of a mapping test is not stored");
    }
  }

  async #read(): Promise<Pick<sql.MappingTestEnd, "status" | "code" | "detail">> {
    try {
      const bytes = this.#counted(this.#deps.openFile(this.#file.objectName));
      for await (const { record } of rowsOf(this.#file, bytes, (file) => this.#withProgress(file))) {
        if (record === undefined) this.#counts.skipped += 1;
        else if (record.type === "line") this.#addLine(record.line);
        else if (record.type === "malformed") this.#addMalformed(record.malformed);
      }
      return { status: "done", code: null, detail: null };
    } catch (error) {
      if (error instanceof StatementRefusedError) return { status: "refused", code: error.code, detail: error.message };
      if (error instanceof StoppedError) return { status: "failed", code: "stopped", detail: LOST };
      this.#deps.log.error({ err: error, testId: this.#testId }, "a mapping test failed");
      return { status: "failed", code: "unavailable", detail: "The file could not be read; test the mapping again." };
    }
  }

  async *#counted(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes) {
      this.#counts.readBytes += chunk.length;
      yield chunk;
    }
  }

  /** Stores the progress of the test, also for a file without rows and while an archive is unpacked. */
  async *#withProgress(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of bytes) {
      if (this.#deps.stopping.aborted) throw new StoppedError();
      const { progressMs = MAPPING_LIMITS.testProgressMs } = this.#deps;
      if (performance.now() - this.#writtenAtMs >= progressMs) {
        this.#writtenAtMs = performance.now();
        await sql.writeMappingTest(this.#deps.database, this.#testId, this.#counts);
      }
      yield chunk;
    }
  }

  #addLine({ kind, currency, amountMinor, feeMinor = 0n, bookedOn }: StatementLine): void {
    this.#counts.lines += 1;
    const key = `${currency} ${kind}`;
    const sum = this.#totals.get(key) ?? { currency, kind, lines: 0, amountMinor: "0", feeMinor: "0" };
    sum.lines += 1;
    sum.amountMinor = (BigInt(sum.amountMinor) + amountMinor).toString();
    sum.feeMinor = (BigInt(sum.feeMinor) + feeMinor).toString();
    this.#totals.set(key, sum);
    const { from, to } = this.#days ?? { from: bookedOn, to: bookedOn };
    this.#days = { from: bookedOn < from ? bookedOn : from, to: bookedOn > to ? bookedOn : to };
  }

  #addMalformed({ position, column, reason, raw }: MalformedLine): void {
    this.#counts.malformed += 1;
    if (this.#malformedRows.length >= MAPPING_LIMITS.testMalformedRows) return;
    const [name, sentence, text] = [column, reason, raw].map(storedText);
    this.#malformedRows.push({ position, column: name ?? "", reason: sentence ?? "", raw: text ?? "" });
  }

  async #end(how: Pick<sql.MappingTestEnd, "status" | "code" | "detail">): Promise<void> {
    const totals = [...this.#totals.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
    const facts = { totals, malformedRows: this.#malformedRows };
    const days = { fromDate: this.#days?.from ?? null, toDate: this.#days?.to ?? null };
    await sql.endMappingTest(this.#deps.database, this.#testId, { ...how, ...this.#counts, ...facts, ...days });
  }
}

/** As the database stores them: of the reason only its sentence. */
type StoredRow = { readonly [Field in keyof MalformedLine]: MalformedLine[Field] };

const LOST = "The process of the test has ended; test the mapping again.";

function testOf(row: sql.MappingTestRow): bus.MappingTest {
  const { totals, malformedRows } = mappingTestSchema
    .pick({ totals: true, malformedRows: true })
    .parse({ totals: row.totals, malformedRows: row.malformed_rows });
  const { status_code: code, status_detail: detail } = row;
  return {
    testId: row.test_id,
    importId: row.import_id,
    mappingId: row.mapping_id,
    status: row.is_lost ? "failed" : row.status,
    refusal: row.is_lost ? { code: "stopped", detail: LOST } : code === null ? null : { code, detail: detail ?? "" },
    readBytes: row.read_bytes,
    sizeBytes: row.size_bytes,
    lines: row.lines,
    malformed: row.malformed,
    skipped: row.skipped,
    totals,
    fromDate: row.from_date,
    toDate: row.to_date,
    malformedRows: malformedRows.map((malformed) => ({ ...malformed, ...malformedReason(malformed.reason) })),
    startedBy: row.started_by,
    startedAtMs: row.started_at.getTime(),
    endedAtMs: row.ended_at?.getTime() ?? null,
  };
}
