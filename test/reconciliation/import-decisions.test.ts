/** Release and withdrawal of imports against a real PostgreSQL, with real runs over what is imported. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../services/bus/messages/caller.ts";
import {
  carryOutWithdrawals,
  type DecisionDeps,
  releaseImport,
  startWithdrawals,
  withdrawImport,
} from "../../services/reconciliation/import-decisions.ts";
import { WITHDRAWAL_LIMITS } from "../../services/reconciliation/limits.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import type { Repeated } from "../../services/runtime/repeat.ts";
import { operator, refusalOf } from "./closings/closing-world.ts";
import { type Line, type RunDatabase, type RunWorld, startRunDatabase } from "./matching/run-world.ts";

let running: RunDatabase;
let world: RunWorld;
let deps: DecisionDeps;
beforeAll(async () => {
  running = await startRunDatabase();
  world = await running.openWorld();
  const log = { info: () => undefined, warn: () => undefined, error: (fields: unknown) => void failures.push(fields) };
  deps = { database: running.database, longDatabase: running.database, log, underWay: new Set() };
});
afterAll(() => running.stop());

/** The errors that were logged. */
const failures: unknown[] = [];
afterEach(() => expect(failures).toEqual([]));

const rita = (): Caller => operator(world, 7);
const otto = (): Caller => operator(world, 8);

const REASON = "Wrong file.";
const askWithdrawal = (importId: number, caller = rita(), reason = REASON) =>
  withdrawImport(deps, { caller, importId, reason });
/** Withdraws, and also waits for a withdrawal that continues after its reply, as on a slow machine. */
async function withdraw(...of: Parameters<typeof askWithdrawal>): ReturnType<typeof askWithdrawal> {
  const reply = await askWithdrawal(...of);
  if (reply.import.status !== "withdrawing") return reply;
  await Promise.all(deps.underWay);
  return await askWithdrawal(...of);
}

let accounts = 0;
const addAccount = () => world.addAccount(`provider-${(accounts += 1)}`);
let references = 0;
/** A line without a payment. */
const stray = (more: Partial<Line> = {}): Line => {
  const name = `stray-${(references += 1)}`;
  return { name, providerReference: name, ...more };
};

interface IssueFacts {
  readonly issue_id: number;
  readonly kind: string;
  readonly status: string;
  readonly reason: string | null;
  readonly assignee_id: number | null;
}
const issuesOf = async (accountId: number): Promise<readonly IssueFacts[]> =>
  (
    await world.database<IssueFacts[]>`
      select issue_id, kind, status, reason, assignee_id from issues where statement_account_id = ${accountId} order by issue_id`
  ).map((row) => ({ ...row }));
const linesOf = async (accountId: number): Promise<number> =>
  (await world.database`select from statement_lines where account_id = ${accountId}`).count;

/** Stores an import in any status, with malformed rows. */
async function addImport(
  accountId: number,
  { status = "held", rows = [] }: { readonly status?: string; readonly rows?: readonly string[] } = {},
): Promise<number> {
  const importId = await world.importLines(accountId, []);
  await world.database`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
    select ${importId}, place, 'Amount', 'It is no amount.', raw from unnest(${[...rows]}::text[]) with ordinality as row (raw, place)`;
  await world.database`
    update statement_imports set status = ${status}, status_code = 'batch_total_mismatch', status_detail = 'It does not add up.'
    where import_id = ${importId}`;
  return importId;
}

describe("a withdrawal", () => {
  test("removes lines that no other import has, and names the person, the time and the reason", async () => {
    const accountId = await addAccount();
    const [first, both, second] = [stray(), stray(), stray()];
    const importId = await world.importLines(accountId, [first, both]);
    await world.importLines(accountId, [both, second]);
    const { import: withdrawn } = await withdraw(importId);
    expect(withdrawn).toMatchObject({ importId, status: "withdrawn", withdrawn: { by: 7, reason: REASON } });
    expect(Math.abs((withdrawn.withdrawn?.atMs ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(await linesOf(accountId)).toBe(2);
  });

  test("ends the issues of its lines with its reason, under the person's name, and no others", async () => {
    const accountId = await addAccount();
    const [going, staying] = [stray(), stray()];
    const importId = await world.importLines(accountId, [going, staying]);
    await world.importLines(accountId, [staying]);
    await world.run(accountId);
    expect((await issuesOf(accountId)).map(({ status }) => status)).toEqual(["open", "open"]);
    await withdraw(importId);
    const ended = (await issuesOf(accountId)).filter(({ status }) => status === "ended");
    expect(ended).toMatchObject([{ kind: "unmatched_money", reason: REASON }]);
    const [event] = await world.database<{ action: string; data: object }[]>`
      select action, data from provider_events where subject_kind = 'issue' and subject_id = ${ended[0]?.issue_id ?? 0}`;
    expect(event).toEqual({
      action: "issue_ended",
      data: { kind: "unmatched_money", reason: REASON, import_id: importId },
    });
  });

  test("ends the issues of its malformed rows, except those of another import", async () => {
    const accountId = await addAccount();
    const importId = await addImport(accountId, { status: "imported", rows: ["only here", "in both"] });
    await addImport(accountId, { status: "imported", rows: ["in both"] });
    await world.run(accountId);
    expect((await issuesOf(accountId)).map(({ kind, status }) => [kind, status])).toEqual([
      ["malformed_line", "open"],
      ["malformed_line", "open"],
    ]);
    await withdraw(importId);
    expect((await issuesOf(accountId)).filter(({ status }) => status === "ended")).toMatchObject([{ reason: REASON }]);
    await world.run(accountId);
    expect((await issuesOf(accountId)).map(({ status }) => status).toSorted()).toEqual(["ended", "open"]);
  });

  test("ends missing-payment issues on days that no other file covers", async () => {
    const accountId = world.qrAccountId;
    await world.pay({ reference: "paid", day: "2026-03-10" });
    const importId = await world.importLines(accountId, [stray({ amountMinor: 77 })]);
    await world.run(accountId);
    const missing = async () => (await issuesOf(accountId)).filter(({ kind }) => kind === "missing_in_statement");
    expect(await missing()).toMatchObject([{ status: "open" }]);
    await withdraw(importId);
    expect(await missing()).toMatchObject([{ status: "ended", reason: REASON }]);
  });

  test("ends the issue of a row that shows a card payment as cash", async () => {
    const own = await running.openWorld();
    const accountId = own.terminalAccountId;
    const paymentReference = "slip-0815-2026";
    await own.pay({ route: "attested_terminal", reference: paymentReference });
    const importId = await own.importLines(accountId, [
      stray({ kind: "cash_payment", paymentReference }),
      stray({ amountMinor: 90 }),
    ]);
    await own.run(accountId);
    const shown = async () => (await issuesOf(accountId)).filter(({ kind }) => kind === "status_mismatch");
    expect(await shown()).toMatchObject([{ status: "open" }]);
    await withdraw(importId, { ...rita(), organizationId: own.organizationId });
    expect(await shown()).toMatchObject([{ status: "ended", reason: REASON }]);
  });

  test("frees the payments of its lines: the next file matches them again", async () => {
    const accountId = await world.addAccount("terminals");
    const reference = "slip-4711-2026";
    await world.pay({ route: "attested_terminal", reference });
    const line: Line = { name: "of the slip", providerReference: reference };
    const importId = await world.importLines(accountId, [line]);
    expect((await world.run(accountId)).lines).toMatchObject({ "of the slip": "matched" });
    await withdraw(importId);
    const left = await world.database`select from statement_matches where account_id = ${accountId}`;
    expect(left.count).toBe(0);
    await world.importLines(accountId, [line]);
    expect((await world.run(accountId)).lines).toMatchObject({ "of the slip": "matched" });
  });
});

describe("an import that a closing depends on", () => {
  test("a withdrawal is refused, and its lines stay", async () => {
    const accountId = await addAccount();
    const importId = await world.importLines(accountId, [stray()]);
    await world.database`
      with k as (insert into closing_keys (key_id, public_key) values ('0123456789abcdef', sha256('key')) returning key_id),
      c as (
        insert into period_closings (organization_id, account_id, kind, from_date, to_date, through_line_id, statement, statement_hash,
          key_id, signature, closed_by, closed_by_name, closed_at, reason)
        select ${world.organizationId}, ${accountId}, 'day', '2026-03-10', '2026-03-10', 1, '{}', sha256('{}'), key_id,
          sha256('a') || sha256('b'), 7, 'Rita', now(), 'It is complete.' from k returning closing_id)
      insert into closing_imports (closing_id, import_id) select closing_id, ${importId} from c`;
    expect(await refusalOf(withdraw(importId))).toBe("period_closed");
    expect(await linesOf(accountId)).toBe(1);
  });
});

describe("a withdrawn file that is imported again", () => {
  test("closed issues stay closed, and undecided ones return with their assignee", async () => {
    const accountId = await addAccount();
    const [closed, assigned] = [stray(), stray({ amountMinor: 900 })];
    const importId = await world.importLines(accountId, [closed, assigned]);
    await world.run(accountId);
    await world.database`
      update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'Paid back.'
      where statement_account_id = ${accountId} and amount_minor = 1250`;
    await world.database`
      update issues set status = 'assigned', assignee_id = 7 where statement_account_id = ${accountId} and amount_minor = 900`;
    const before = await issuesOf(accountId);
    await withdraw(importId);
    expect((await issuesOf(accountId)).map(({ status }) => status).toSorted()).toEqual(["closed", "ended"]);
    await world.run(accountId);
    await world.importLines(accountId, [assigned, closed]);
    await world.run(accountId);
    expect(await issuesOf(accountId)).toEqual(before);
  });

  test("a confirmed match and a rejected candidate return unchanged", async () => {
    const accountId = await world.addAccount("terminals of the terrace");
    const confirmed = await world.pay({ route: "attested_terminal", reference: "typed-wrong-1", amountMinor: 4321 });
    const rejected = await world.pay({ route: "attested_terminal", reference: "typed-wrong-2", amountMinor: 8765 });
    const lines = [stray({ amountMinor: 4321 }), stray({ amountMinor: 8765 })];
    const importId = await world.importLines(accountId, lines);
    const decide = (minor: number, key: string, decision: string) => world.database`
      insert into match_decisions (account_id, fingerprint, payment_key, decision, decided_by, reason)
      select account_id, fingerprint, ${key}, ${decision}, 7, 'Seen on the slip.' from statement_lines
      where account_id = ${accountId} and amount_minor = ${minor}`;
    await decide(4321, confirmed, "confirmed");
    await decide(8765, rejected, "rejected");
    const { lines: before } = await world.run(accountId);
    expect(Object.values(before)).toEqual(expect.arrayContaining(["matched", "unmatched_money"]));
    await withdraw(importId);
    await world.run(accountId);
    await world.importLines(accountId, lines.toReversed());
    expect((await world.run(accountId)).lines).toEqual(before);
  });
});

describe("two operators at once", () => {
  test("a repeated decision: the same answer for the same person, a refusal for another person", async () => {
    const importId = await world.importLines(await addAccount(), [stray()]);
    const first = await withdraw(importId);
    expect(await withdraw(importId)).toEqual(first);
    expect(await refusalOf(withdraw(importId, otto()))).toBe("import_withdrawn");
    expect(await refusalOf(withdraw(importId, rita(), "For another reason."))).toBe("import_withdrawn");
  });

  test("a release and a withdrawal at the same moment: one comes first, and each is complete or refused", async () => {
    const accountId = await addAccount();
    for (let round = 0; round < 5; round += 1) {
      const importId = await addImport(accountId);
      const released = releaseImport(deps, { caller: otto(), importId, reason: "The bank has confirmed it." });
      const withdrawn = withdraw(importId);
      const [release, withdrawal] = await Promise.allSettled([released, withdrawn]);
      expect(withdrawal.status).toBe("fulfilled");
      if (release.status === "rejected") expect(await refusalOf(released)).toMatch(/^import_withdraw(?:ing|n)$/);
      // The release may have locked the row at the moment when the withdrawal was to be carried out.
      await carryOutWithdrawals(deps, WITHDRAWAL_LIMITS.turnMs);
      const [row] = await world.database<{ status: string }[]>`
        select status from statement_imports where import_id = ${importId}`;
      expect(row).toEqual({ status: "withdrawn" });
    }
  });

  test("a release of an import that is not held: refused; of another organization's import: not found", async () => {
    const accountId = await addAccount();
    const release = (importId: number, caller = rita()) => releaseImport(deps, { caller, importId, reason: REASON });
    expect(await refusalOf(release(await world.importLines(accountId, [])))).toBe("import_imported");
    const importId = await addImport(accountId);
    const elsewhere = { ...rita(), organizationId: world.organizationId + 1_000_000 };
    expect(await refusalOf(release(importId, elsewhere))).toBe("not_found");
    expect(await release(importId)).toMatchObject({
      import: { status: "waiting", released: { by: 7, reason: REASON } },
    });
    expect(await refusalOf(release(importId, otto()))).toBe("import_waiting");
    expect(await refusalOf(release(importId, { ...rita(), permissions: [] }))).toBe("permission_denied");
    expect(await refusalOf(withdraw(await addImport(accountId, { status: "refused" })))).toBe("import_refused");
  });

  test("a withdrawal while an import stores its lines: busy, and possible afterwards", async () => {
    const importId = await addImport(await addAccount());
    const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const storing = world.database.begin(async (tx) => {
      await tx`select from statement_imports where import_id = ${importId} for update`;
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    expect(await refusalOf(withdraw(importId))).toBe("busy");
    release.resolve();
    await storing;
    expect(await withdraw(importId)).toMatchObject({ import: { status: "withdrawn" } });
  });
});

test("a withdrawal whose process has ended, or that a run blocks: completed later", async () => {
  const accountId = await addAccount();
  const importId = await world.importLines(accountId, [stray()]);
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const run = world.database.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended('reconciliation account ' || ${accountId}::bigint, 0))`;
    held.resolve();
    await release.promise;
  });
  await held.promise;
  expect(await askWithdrawal(importId)).toMatchObject({ import: { status: "withdrawing" } });
  expect(await refusalOf(withdraw(importId, otto()))).toBe("import_withdrawing");
  expect(await linesOf(accountId)).toBe(1);
  release.resolve();
  await run;
  await carryOutWithdrawals(deps, WITHDRAWAL_LIMITS.turnMs);
  expect(await withdraw(importId)).toMatchObject({ import: { status: "withdrawn" } });
  expect(await linesOf(accountId)).toBe(0);
});

test("a withdrawal that fails again in a later attempt: each log line has the id of its request", async () => {
  const importId = await world.importLines(await addAccount(), [stray()]);
  const requestIds: (string | undefined)[] = [];
  const log = { ...deps.log, error: () => void requestIds.push(currentRequestId()) };
  const begin = (): Promise<never> => Promise.reject(new Error("The database has no space."));
  const failing: DecisionDeps = { ...deps, log, longDatabase: { begin } as unknown as DecisionDeps["longDatabase"] };
  await forRequest("the withdrawal", () => withdrawImport(failing, { caller: rita(), importId, reason: REASON }));
  await carryOutWithdrawals(failing, WITHDRAWAL_LIMITS.turnMs);
  expect(requestIds).toEqual(["the withdrawal", "the withdrawal"]);
  await carryOutWithdrawals(deps, WITHDRAWAL_LIMITS.turnMs);
});

test("a withdrawal while runs follow one another: it is carried out after the current run", async () => {
  const accountId = await addAccount();
  const importId = await world.importLines(accountId, [stray()]);
  const key = "hashtextextended('reconciliation account ' || $1::bigint, 0)";
  const waiting = async (): Promise<number> =>
    (await world.database`select from pg_locks where locktype = 'advisory' and not granted`).count;
  let withdrawn: Promise<void> | undefined;
  await world.database.begin(async (tx) => {
    await tx.unsafe(`select pg_advisory_xact_lock(${key})`, [accountId]);
    expect(await askWithdrawal(importId)).toMatchObject({ import: { status: "withdrawing" } });
    withdrawn = carryOutWithdrawals(deps, WITHDRAWAL_LIMITS.turnMs);
    await expect.poll(waiting, { timeout: 10_000, interval: 10 }).toBe(1);
  });
  await withdrawn;
  expect(await withdraw(importId)).toMatchObject({ import: { status: "withdrawn" } });
});

test("a withdrawal behind others whose accounts are busy: it does not wait for them", async () => {
  const others = [await addAccount(), await addAccount()];
  const accountId = await addAccount();
  const left: number[] = [];
  for (const each of [...others, accountId]) left.push(await world.importLines(each, [stray()]));
  await world.database`
    update statement_imports set status = 'withdrawing', withdrawn_by = 7, withdrawn_at = now(), withdrawal_reason = ${REASON}
    where import_id = any(${left}::bigint[])`;
  let withdrawals: Repeated[] = [];
  await world.database.begin(async (tx) => {
    for (const each of others)
      await tx`select pg_advisory_xact_lock(hashtextextended('reconciliation account ' || ${each}::bigint, 0))`;
    withdrawals = startWithdrawals(deps);
    await expect.poll(() => linesOf(accountId), { timeout: 8_000, interval: 50 }).toBe(0);
    expect(await linesOf(others[0] ?? 0)).toBe(1);
  });
  await expect.poll(() => linesOf(others[1] ?? 0), { timeout: 15_000, interval: 50 }).toBe(0);
  await Promise.all(withdrawals.map((each) => each.stop()));
});
