/**
 * The decisions of operators about imports. Every operation needs `reconciliation.manage`.
 *
 *   held ── release ──► waiting ──► importing ──► imported
 *   any but refused ── withdraw ──► withdrawing ──► withdrawn
 */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();

export const IMPORT_STATUSES = [
  "needs_format",
  "waiting",
  "importing",
  "held",
  "imported",
  "refused",
  "withdrawing",
  "withdrawn",
] as const;
export type ImportStatus = (typeof IMPORT_STATUSES)[number];

/** Why a decision cannot be made: the `reason` of a `conflict`. */
export const IMPORT_CONFLICTS = [
  /** The import's status at that moment: another operator or the import itself has changed it first. */
  ...IMPORT_STATUSES.map((status) => `import_${status}` as const),
  /** A closed period contains its lines. */
  "period_closed",
] as const;

/** Who has made the decision, when and why; null without such a decision. */
export const decisionSchema = z.object({ by: id, atMs: z.number(), reason: z.string() }).nullable();
export type ImportDecision = z.infer<typeof decisionSchema>;

export const decidedImportSchema = z.object({
  importId: id,
  accountId: id,
  status: z.enum(IMPORT_STATUSES),
  released: decisionSchema,
  withdrawn: decisionSchema,
});
export type DecidedImport = z.infer<typeof decidedImportSchema>;
const decided = z.object({ import: decidedImportSchema });
const request = z.object({ caller, importId: id, reason });

/**
 * Imports a held file, although its totals do not balance or it names another account. Refuses with `not_found`, or
 * `conflict` with a reason of `IMPORT_CONFLICTS`. When the same person repeats the request with the same reason, the
 * answer is the same.
 */
export const releaseImport = repeatable("reconciliation.releaseImport", request, decided);

/**
 * Withdraws an import: deletes the lines that no other file has, and ends their issues with the reason. Answers when
 * this is done, or after a short time while it continues. Repetitions and refusals are as for `releaseImport`.
 */
export const withdrawImport = repeatable("reconciliation.withdrawImport", request, decided);
