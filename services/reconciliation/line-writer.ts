/**
 * Writes the lines of a file while it is read; the files of an archive follow one after another. A line with an identity that
 * is new to the account and to the file is stored at once. Lines whose identity repeats in the file, and lines that the account
 * already has, depend on the rest of the file and are decided at its end. Memory is bounded by one batch.
 */
import { hash } from "node:crypto";
import type { Transaction } from "../db/pool.ts";
import type { StatementLine } from "./formats/format.ts";
import * as sql from "./sql/store-lines.ts";

/** A line as it is written. */
export interface WritableLine {
  readonly position: number;
  /** Hex, of `lineIdentity`. */
  readonly identity: string;
  /** Hex, of the first line with the identity. */
  readonly fingerprint: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly payoutReference: string;
  /** In COPY's text format. */
  readonly fields: string;
}

export function writableLine(line: StatementLine, identity: Buffer): WritableLine {
  return {
    position: line.position,
    identity: identity.toString("hex"),
    fingerprint: hash("sha256", Buffer.concat([identity, FIRST_ORDINAL]), "hex"),
    amountMinor: line.amountMinor,
    currency: line.currency,
    payoutReference: line.payoutReference,
    fields: sql.fieldsOf(line),
  };
}
/** As the function `line_fingerprint` of PostgreSQL encodes it: four bytes. */
const FIRST_ORDINAL = Buffer.alloc(4);

export class LineWriter {
  readonly #tx: Transaction;
  readonly #owner: sql.LineOwner;
  #lineIds: number[] = [];
  /** The smallest line id of this file; the lines that the account had before have smaller ids. */
  #firstLineId = Number.POSITIVE_INFINITY;
  #hasUndecided = false;
  #lines = 0;
  #sources = 0;

  /** The transaction has the account (`lockAccountOfImport`). */
  constructor(tx: Transaction, owner: sql.LineOwner) {
    this.#tx = tx;
    this.#owner = owner;
  }

  async write(batch: readonly WritableLine[]): Promise<void> {
    const fingerprints = batch.map((line) => line.fingerprint);
    const [known] = await Promise.all([
      sql.findLines(this.#tx, this.#owner.accountId, fingerprints),
      this.#takeLineIds(batch.length),
    ]);
    const rows = this.#divide(batch, known);
    if (rows.undecided.length > 0 && !this.#hasUndecided) {
      await sql.createUndecided(this.#tx);
      this.#hasUndecided = true;
    }
    await sql.copyRows(this.#tx, "lines", rows.lines);
    await sql.copyRows(this.#tx, "sources", rows.sources);
    await sql.copyRows(this.#tx, "undecided", rows.undecided);
    if (rows.payouts.length > 0) await sql.addPayouts(this.#tx, this.#owner, rows.payouts);
    this.#lines += rows.lines.length;
    this.#sources += rows.sources.length;
  }

  /** Sends an empty statement, so that the transaction does not count as hung. */
  async keep(): Promise<void> {
    await this.#tx`select`;
  }

  /** Begins the next file of an archive. It may overlap the files before it, whose lines the account now has. */
  async nextFile(): Promise<void> {
    await this.#decide();
    await sql.searchByIndex(this.#tx, true);
    // The lines that were decided just now have greater ids than the ids that are left.
    this.#lineIds = [];
    this.#firstLineId = Number.POSITIVE_INFINITY;
  }

  /** Decides what was left open. Returns how many lines are new and how many known. */
  async end(): Promise<{ readonly linesNew: number; readonly linesKnown: number }> {
    await this.#decide();
    return { linesNew: this.#lines, linesKnown: this.#sources - this.#lines };
  }

  async #decide(): Promise<void> {
    if (!this.#hasUndecided) return;
    await sql.searchByIndex(this.#tx, false);
    const change = await sql.decideUndecided(this.#tx, this.#owner, this.#firstLineId);
    this.#lines += change.lines;
    this.#sources += change.sources;
    this.#hasUndecided = false;
  }

  async #takeLineIds(count: number): Promise<void> {
    const missing = count - this.#lineIds.length;
    if (missing <= 0) return;
    this.#lineIds.push(...(await sql.takeLineIds(this.#tx, missing)));
    this.#firstLineId = Math.min(this.#firstLineId, this.#lineIds[0] ?? this.#firstLineId);
  }

  #divide(batch: readonly WritableLine[], known: ReadonlyMap<string, sql.KnownLine>) {
    const rows = {
      lines: [] as string[],
      sources: [] as string[],
      undecided: [] as string[],
      payouts: [] as sql.NamedPayout[],
    };
    const written = new Set<string>();
    let taken = 0;
    for (const line of batch) {
      const { position, fingerprint } = line;
      const before = known.get(fingerprint);
      if (before === undefined && !written.has(fingerprint)) {
        const lineId = this.#lineIds[taken] ?? 0;
        taken += 1;
        written.add(fingerprint);
        rows.lines.push(sql.lineRow(this.#owner, { lineId, fingerprint, fields: line.fields }));
        rows.sources.push(sql.sourceRow(this.#owner, position, lineId));
        continue;
      }
      const isKnown = before !== undefined && before.line_id < this.#firstLineId;
      const hasSource =
        isKnown && before.amount_minor === line.amountMinor.toString() && before.currency === line.currency;
      if (hasSource) rows.sources.push(sql.sourceRow(this.#owner, position, before.line_id));
      const canHavePayout = before?.payout_reference === "" || before?.has_added_payout === true;
      if (hasSource && canHavePayout && line.payoutReference !== "" && line.payoutReference !== before.payout_reference)
        rows.payouts.push({ lineId: before.line_id, payoutReference: line.payoutReference });
      rows.undecided.push(sql.undecidedRow({ ...line, hasSource }));
    }
    this.#lineIds = this.#lineIds.slice(taken);
    return rows;
  }
}
