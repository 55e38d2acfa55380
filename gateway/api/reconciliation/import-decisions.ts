/** The decisions about imports: an operator releases a held file, or withdraws any file. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/import-decisions.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { idSchema, reasonSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";

export const importStatusSchema = z.enum(bus.IMPORT_STATUSES).meta({
  id: "StatementImportStatus",
  description:
    "`needs_format`: a person must confirm its format first; `held`: an operator must decide whether it is imported; `withdrawing`: the service deletes its lines, which takes minutes for a large file.",
});
const bodySchema = z
  .strictObject({ reason: reasonSchema })
  .meta({ id: "DecideImport", examples: [{ reason: "The bank has confirmed the closing balance." }] });
export const decisionSchema = z
  .object({ by: idSchema.meta({ description: "The person." }), at: timestampSchema, reason: z.string() })
  .nullable();
const decidedImportSchema = z
  .object({
    import_id: idSchema,
    account_id: idSchema,
    status: importStatusSchema,
    released: decisionSchema,
    withdrawn: decisionSchema,
  })
  .meta({
    id: "DecidedImport",
    examples: [
      {
        import_id: 9,
        account_id: 3,
        status: "withdrawn",
        released: null,
        withdrawn: { by: 42, at: "2026-11-20T12:00:00.000Z", reason: "The file of another restaurant." },
      },
    ],
  });

function decidedImportJson(decided: bus.DecidedImport): z.infer<typeof decidedImportSchema> {
  return {
    import_id: decided.importId,
    account_id: decided.accountId,
    status: decided.status,
    released: decisionJson(decided.released),
    withdrawn: decisionJson(decided.withdrawn),
  };
}

export function decisionJson(decision: bus.ImportDecision): z.infer<typeof decisionSchema> {
  return decision && { by: decision.by, at: toTimestamp(decision.atMs), reason: decision.reason };
}

const CONFLICTS = `The \`reason\` of a \`conflict\` is one of ${bus.IMPORT_CONFLICTS.map((word) => `\`${word}\``).join(", ")}. When the same person repeats the request with the same body, the answer is the same.`;

type Decide = SessionHandler<z.infer<typeof bodySchema>>;

const releaseImport: Decide = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, importId: context.id("import_id"), reason: body.reason };
  return ok(decidedImportJson((await deps.bus.call(bus.releaseImport, request)).import));
};

const withdrawImport: Decide = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, importId: context.id("import_id"), reason: body.reason };
  return ok(decidedImportJson((await deps.bus.call(bus.withdrawImport, request)).import));
};

const statementImport = "/api/reconciliation/v1/imports/{import_id}/" as const;
const replies = { 200: { description: "The import after the decision.", schema: decidedImportSchema } };

export const importDecisionRoutes = [
  reconciliationRoute({
    method: "POST",
    path: `${statementImport}release/`,
    operation: "releaseImport",
    summary: "Release a held file for import",
    description: `The service holds a file when its totals do not balance, or when it names another account. After the release, the file waits for its turn. ${CONFLICTS}`,
    body: bodySchema,
    replies,
    errors: ["not_found", "conflict"],
    handler: releaseImport,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${statementImport}withdraw/`,
    operation: "withdrawImport",
    summary: "Withdraw an import",
    description: `The service deletes the lines that no other file has, and ends their undecided issues with the reason. When the file is imported again, the earlier decisions of people apply again. ${CONFLICTS}`,
    body: bodySchema,
    replies,
    errors: ["not_found", "conflict"],
    handler: withdrawImport,
  }),
];
