/** What tests of closings share: operators, a signing key, and the exported file as the gateway writes it. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { Caller } from "../../../services/bus/messages/caller.ts";
import type * as bus from "../../../services/bus/messages/reconciliation-closings.ts";
import { RefusedError } from "../../../services/bus/refusals.ts";
import { closePeriod, listClosingItems } from "../../../services/reconciliation/closings.ts";
import { listPeriods } from "../../../services/reconciliation/periods.ts";
import { createSigningKey } from "../../../services/runtime/signing-key.ts";
import type { RunWorld } from "../matching/run-world.ts";

export const REASON = "All differences are decided.";
export const newKey = () => createSigningKey(randomBytes(32));
const closingKey = newKey();

export const operator = ({ organizationId }: Pick<RunWorld, "organizationId">, userId = 7): Caller => ({
  userId,
  name: `Operator ${userId}`,
  organizationId,
  role: "reconciliation_operator",
  permissions: ["reconciliation.manage"],
});

export const depsOf = ({ database }: RunWorld, key: ReturnType<typeof newKey> | undefined = closingKey) => ({
  database,
  longDatabase: database,
  closingKey: key,
});

export interface Asked {
  readonly kind?: "day" | "month";
  readonly fromDate?: string;
  readonly userId?: number;
  readonly reason?: string;
}

export async function close(world: RunWorld, accountId: number, asked: Asked = {}): Promise<bus.Closing> {
  const { kind = "day", fromDate = "2026-03-10", userId, reason = REASON } = asked;
  const request = { caller: operator(world, userId), accountId, kind, fromDate, reason };
  return (await closePeriod(depsOf(world), request)).closing;
}

/** The reason of the refusal, or its code where it has none. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof RefusedError) return error.refusal.reason ?? error.refusal.code;
    throw error;
  }
  return "none";
}

/** The day's or month's state with the codes of what is missing. */
export async function stateOf(world: RunWorld, accountId: number, asked: Asked = {}): Promise<readonly string[]> {
  const { kind = "day", fromDate = "2026-03-10" } = asked;
  const request = { caller: operator(world), accountId, kind, fromDate, toDate: fromDate, limit: 10 };
  const [period] = (await listPeriods(depsOf(world), request)).periods;
  return [period?.state ?? "", ...(period?.missing ?? []).map(({ code }) => code)];
}

/** The rows of the exported file. */
export async function exportedRows(world: RunWorld, closing: bus.Closing): Promise<string[]> {
  const { statement, signature, closingId } = closing;
  const { algorithm, keyId, publicKey, value } = signature;
  const head = { algorithm, key_id: keyId, public_key: publicKey, value };
  const rows = [`{"statement":${statement},"signature":${JSON.stringify(head)}}`];
  for (const of of ["line", "issue"] as const) {
    const { items } = await listClosingItems(depsOf(world), { caller: operator(world), closingId, of, limit: 500 });
    rows.push(...items.map(({ item }) => `{"${of}":${item}}`));
  }
  return rows;
}

export const writeRows = (file: string, rows: readonly string[]): void => writeFileSync(file, `${rows.join("\n")}\n`);
