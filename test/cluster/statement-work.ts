/**
 * An operator of reconciliation during a trial: uploads the provider's statement again and again, longer each time, and waits for
 * each import. Runs where `reconciliation` and `sandbox-provider` do.
 */
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { readStatement, type StatementLine } from "../chaos/provider-check.ts";
import { logIn } from "../support/people.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import { type History, NO_STATION } from "./history.ts";
import type { Pace } from "./pace.ts";
import type { SideWork } from "./side-work.ts";
import { StuckError, TrialClient, workUntil } from "./trial-client.ts";

const PASSWORD = "a long enough password";
const LOOK_MS = 500;
/** From the answer to an upload to the end of its import. Longer than any outage and than the lease of an abandoned import. */
const IMPORTED_WITHIN_MS = 90_000;
const RUN_WITHIN_MS = 60_000;
const HEADER = "line,payment_id,reference,account,amount,currency,paid_at";

interface Import {
  readonly import_id: number;
  readonly status: string;
  readonly lines_new: number;
  readonly lines_known: number;
  readonly malformed: number;
}
interface Run {
  readonly status: string;
  readonly lines: number;
  readonly matched: number;
  readonly differing: number;
}

export async function startStatementWork(world: ClusterWorld, history: History, pace: Pace): Promise<SideWork> {
  const { gateways, owner, provider, postgres: server } = world;
  if (provider === undefined) throw new Error("There is no provider.");
  const details = { email: "rita@trial.example", password: PASSWORD };
  await owner.good("POST", "users/", { body: { ...details, name: "Rita", role: "reconciliation_operator" } });
  const operator = await logIn(gateways[0], "reconciliation", details);
  const { account_id } = await operator.good<{ account_id: number }>("POST", "accounts/", {
    body: {
      provider: "sandbox",
      reference: provider.account,
      name: "QR",
      mode: "test",
      settlement_delay_days: 3,
      config_id: provider.configId,
    },
  });
  const client = new TrialClient({ caller: operator, gateways, history, stationId: NO_STATION });
  const sql = postgres(server.url, { max: 1, onnotice: () => undefined });
  const imports: Import[] = [];
  let linesOfLast = 0;
  let isStopped = false;

  /** The lines whose payments the service has received: a callback may still be in transit when the statement has its line. */
  const knownLines = async (): Promise<readonly StatementLine[]> => {
    const lines = await readStatement(provider);
    const rows = await sql<{ reference: string }[]>`
      select reference from transactions where route = 'dynamic_qr' union select provider_reference from issues`;
    const known = new Set(rows.map(({ reference }) => reference));
    const unknown = lines.findIndex(({ payment_id }) => !known.has(payment_id));
    return unknown === -1 ? lines : lines.slice(0, unknown);
  };

  const importNext = async (): Promise<void> => {
    const lines = await knownLines();
    if (lines.length === linesOfLast) return;
    const request = { file: csvOf(lines, provider.account) };
    const path = `accounts/${account_id}/imports/?file_name=trial-${lines.length}.csv&format=sandbox&encoding=utf-8`;
    const { body: uploaded } = await client.send<Import>("upload", "POST", path, request);
    const deadlineMs = performance.now() + IMPORTED_WITHIN_MS;
    for (let found = uploaded; ; ) {
      if (found.status === "imported") {
        imports.push(found);
        linesOfLast = lines.length;
        return;
      }
      if (performance.now() > deadlineMs) {
        const sentence = `The import ${found.import_id} is ${found.status} after ${IMPORTED_WITHIN_MS} ms.`;
        history.stuck.push(sentence);
        throw new StuckError(sentence);
      }
      await delay(LOOK_MS);
      ({ body: found } = await client.send<Import>("read", "GET", `imports/${found.import_id}/`));
    }
  };

  return {
    async run() {
      await workUntil(
        () => isStopped,
        async () => {
          // During some faults the provider's process or PostgreSQL does not answer.
          await importNext().catch((error: unknown) => {
            if (error instanceof StuckError) throw error;
          });
          await delay(pace.nextFileMs);
        },
      );
    },
    stop() {
      isStopped = true;
    },
    async judge() {
      await importNext();
      const [stored] = await sql<[Stored]>`
        select (select count(*)::int from statement_lines where account_id = ${account_id}) as lines,
          (select count(*)::int from transactions where route = 'dynamic_qr') as sales`;
      const run = await lastRun(client, account_id, linesOfLast);
      const sentences = judgeStatement({ imports, lines: linesOfLast, stored, run });
      await sql.end();
      return { sentences, summary: `${imports.length} imports of a statement of ${linesOfLast} lines` };
    },
  };
}

/** The lines of the account and the sales by QR. */
interface Stored {
  readonly lines: number;
  readonly sales: number;
}

/** `lines` are those of the statement. */
export function judgeStatement(of: {
  readonly imports: readonly Pick<Import, "lines_new" | "malformed">[];
  readonly lines: number;
  readonly stored: Stored;
  readonly run: Partial<Run>;
}): string[] {
  const { imports, lines, stored, run } = of;
  const sentences: string[] = [];
  const linesNew = imports.reduce((sum, { lines_new }) => sum + lines_new, 0);
  const malformed = imports.reduce((sum, one) => sum + one.malformed, 0);
  if (linesNew !== lines || malformed > 0)
    sentences.push(`The statement has ${lines} lines; its imports have ${linesNew} new and ${malformed} malformed.`);
  if (stored.lines !== lines) sentences.push(`The statement has ${lines} lines, and ${stored.lines} are stored.`);
  const isRight = run.matched === stored.sales && run.differing === lines - stored.sales;
  if (lines > 0 && !isRight)
    sentences.push(`The last run is ${JSON.stringify(run)}; of ${lines} lines ${stored.sales} paid an order each.`);
  return sentences;
}

/** The newest run. Waits until it has all lines, or until the deadline. */
async function lastRun(client: TrialClient, accountId: number, lines: number): Promise<Partial<Run>> {
  const deadlineMs = performance.now() + RUN_WITHIN_MS;
  for (;;) {
    const { body } = await client.send<{ runs: Run[] }>("read", "GET", `runs/?account_id=${accountId}`);
    const run: Partial<Run> = body.runs[0] ?? {};
    if ((run.lines === lines && run.status === "done") || performance.now() > deadlineMs) return run;
    await delay(LOOK_MS);
  }
}

/** The statement in the form of the provider's `GET /v1/statement.csv`. */
function csvOf(lines: readonly StatementLine[], account: string): string {
  const rows = lines.map(({ line, payment_id, reference, amount, currency, paid_at }) =>
    [line, payment_id, reference, account, amount, currency, paid_at].join(","),
  );
  return `${[HEADER, ...rows].join("\r\n")}\r\n`;
}
