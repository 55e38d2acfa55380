/** The judges of what happens beside the stations of a trial find each kind of error, and none where there is none. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { compareWithProvider, type ProviderRows } from "../chaos/provider-check.ts";
import { CopyWaits } from "./audit-copy-watch.ts";
import { wrongCanaryAnswers } from "./canaries.ts";
import { judgeRobots } from "./robot-work.ts";
import { judgeStatement } from "./statement-work.ts";

describe("an entry of a log", () => {
  it("waits until the copy has its sequence", () => {
    const waits = new CopyWaits();
    waits.add("LOG", 1, 0);
    waits.add("LOG", 2, 1_000);
    waits.add("OTHER", 1, 1_500);
    expect(waits.longestMs(0, 2_000)).toBe(2_000);
    waits.end("LOG", 1, 3_000);
    expect(waits.longestMs(0, 3_500)).toBe(3_000);
    waits.end("LOG", 2, 4_000);
    waits.end("OTHER", 5, 4_000);
    expect(waits.longestMs(3_900, 4_000)).toBe(3_000);
    expect(waits.longestMs(5_000, 6_000)).toBe(0);
  });

  it("waits for ever when the copy does not get it, although the copy of another log does", () => {
    const waits = new CopyWaits();
    waits.add("LOG", 7, 0);
    waits.end("LOG", 6, 1_000);
    waits.end("OTHER", 7, 1_000);
    expect(waits.longestMs(50_000, 60_000)).toBe(60_000);
  });
});

describe("a device that is revoked", () => {
  const REVOCATION = { sentAtMs: 1_000, effectiveAtMs: 2_000 };
  const answered = (status: number, askedAtMs: number, revocation = REVOCATION): string[] => {
    const code = status === 401 ? "credential_invalid" : undefined;
    return wrongCanaryAnswers(
      9,
      [{ gateway: "a gateway", askedAtMs, answeredAtMs: askedAtMs + 10, status, code }],
      revocation,
    );
  };

  it("is answered until its revocation was sent, and not from 1.5 s after it is effective", () => {
    const right = [
      answered(200, 500),
      answered(200, 3_400),
      answered(401, 1_100),
      answered(401, 9_000),
      answered(503, 9_000),
    ];
    expect(right.flat()).toEqual([]);
  });

  it("is answered too long, or refused too early", () => {
    expect(answered(200, 3_600)).toEqual(["a gateway answered device 9 1600 ms after it was revoked."]);
    expect(answered(401, 500)).toEqual(["a gateway answered device 9 with credential_invalid before it was revoked."]);
  });

  it("must be revoked at the end", () => {
    expect(answered(200, 500, { ...REVOCATION, effectiveAtMs: Number.POSITIVE_INFINITY })).toEqual([
      "Device 9 could not be revoked.",
    ]);
  });
});

describe("the provider's statement", () => {
  const LINE = {
    line: 1,
    payment_id: "p1",
    reference: "r1",
    account: "a1",
    amount: "2.50",
    currency: "EUR",
    paid_at: "2026-11-20T12:00:00.000Z",
  };
  const RIGHT: ProviderRows = {
    sales: [{ intent_id: "7", amount_minor: "250", reference: "p1", paid_reference: "p1" }],
    issues: [],
    noted: [{ intent_id: "7", paid_reference: "p1" }],
    tasks: [{ intent_id: "8", kind: "poll", attempts: 1, is_paid: false, late_ms: -500 }],
    callbacks: [],
  };
  const complaintsOf = (rows: Partial<ProviderRows>, lines = [LINE]): readonly string[] =>
    compareWithProvider(lines, { ...RIGHT, ...rows }).complaints;

  it("has a sale or an issue for each payment", () => {
    expect(complaintsOf({})).toEqual([]);
    expect(complaintsOf({ sales: [], noted: [], issues: [{ kind: "late_money", provider_reference: "p1" }] })).toEqual(
      [],
    );
  });

  const SALE = RIGHT.sales[0] as ProviderRows["sales"][number];
  const TASK = RIGHT.tasks[0] as ProviderRows["tasks"][number];
  it.each([
    { what: "a payment without a sale", rows: { sales: [], noted: [] }, found: "The provider's money p1 has 0 sales" },
    { what: "a payment with two sales", rows: { sales: [SALE, SALE] }, found: "The provider's money p1 has 2 sales" },
    {
      what: "a sale that also is an issue",
      rows: { issues: [{ kind: "late_money", provider_reference: "p1" }] },
      found: 'The provider\'s money p1 has 1 sales and the issues ["late_money"].',
    },
    {
      what: "an issue of no payment",
      rows: { issues: [{ kind: "late_money", provider_reference: "p2" }] },
      found: "The issue late_money names money p2, which is none.",
    },
    {
      what: "a sale of another sum",
      rows: { sales: [{ ...SALE, amount_minor: "251" }] },
      found: "Intent 7 was settled by p1 (251)",
    },
    {
      what: "a note of no payment",
      rows: { noted: [{ intent_id: "7", paid_reference: "p2" }] },
      found: "Intent 7 is noted as paid by p2, which is no money.",
    },
    {
      what: "a late task",
      rows: { tasks: [{ ...TASK, late_ms: 2_000 }] },
      found: "The task poll of intent 8 is not done",
    },
    { what: "an open report", rows: { tasks: [{ ...TASK, kind: "confirm" }] }, found: "The task confirm of intent 8" },
    {
      what: "a callback that no gateway accepted",
      rows: { callbacks: [{ event_id: "e1", last_answer: "503", attempts: 4, recorded: 0 }] },
      found: "The callback e1 was answered 503 at attempt 4 and is recorded 0 times.",
    },
  ])("does not fit: $what", ({ rows, found }) => {
    expect(complaintsOf(rows)).toContainEqual(expect.stringContaining(found));
  });

  it("does not fit when it lacks a line", () => {
    expect(complaintsOf({}, [{ ...LINE, line: 2 }])).toEqual(["The statement's line 1 is numbered 2."]);
  });
});

describe("the imports of a statement", () => {
  const RIGHT = {
    imports: [
      { lines_new: 2, malformed: 0 },
      { lines_new: 1, malformed: 0 },
    ],
    lines: 3,
    stored: { lines: 3, sales: 2 },
    run: { matched: 2, differing: 1 },
  };

  it("have each line once, and the last run decides about each", () => {
    expect(judgeStatement(RIGHT)).toEqual([]);
    expect(judgeStatement({ imports: [], lines: 0, stored: { lines: 0, sales: 0 }, run: {} })).toEqual([]);
  });

  const IMPORTED = /^The statement has 3 lines; its imports have /;
  it.each([
    { wrong: { imports: [{ lines_new: 4, malformed: 0 }] }, found: IMPORTED },
    { wrong: { imports: [{ lines_new: 3, malformed: 1 }] }, found: IMPORTED },
    { wrong: { stored: { lines: 4, sales: 2 } }, found: /^The statement has 3 lines, and 4 are stored\.$/ },
    { wrong: { run: { matched: 1, differing: 2 } }, found: /^The last run is .*; of 3 lines 2 paid an order each\.$/ },
    { wrong: { run: {} }, found: /^The last run is \{\}; / },
  ])("are wrong: $wrong", ({ wrong, found }) => {
    expect(judgeStatement({ ...RIGHT, ...wrong })).toEqual([expect.stringMatching(found)]);
  });
});

describe("a serving task", () => {
  const SECRET = "whsec_a-secret";
  const NOW_MS = 1_795_000_000_000;
  const webhook = (taskId: number, secret = SECRET) => {
    const body = JSON.stringify({ payload: { task_id: taskId } });
    const time = NOW_MS / 1_000;
    const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
    return { body, signature: `t=${time},v1=${signature}`, atMs: NOW_MS };
  };
  const RIGHT = {
    offered: [{ taskId: 7, atMs: NOW_MS }],
    received: [webhook(7)],
    secret: SECRET,
    tasks: [{ task_id: 7, status: "completed" }],
  };

  it("has a signed webhook and is completed", () => {
    expect(judgeRobots(RIGHT)).toEqual([]);
  });

  it.each([
    { wrong: { received: [] }, found: "The webhook of serving task 7 did not arrive." },
    { wrong: { received: [webhook(7, "another")] }, found: "A webhook was signed so that it is signature_wrong" },
    {
      wrong: { received: [webhook(7), webhook(8)] },
      found: "A webhook names task 8, which no answer to the owner names.",
    },
    { wrong: { tasks: [{ task_id: 7, status: "accepted" }] }, found: "Serving task 7 was completed and is accepted." },
    { wrong: { tasks: [] }, found: "Serving task 7 was completed and is not there." },
    {
      wrong: { tasks: [...RIGHT.tasks, { task_id: 8, status: "offered" }] },
      found: "No answer to the owner names serving task 8.",
    },
    {
      wrong: { offered: [...RIGHT.offered, ...RIGHT.offered] },
      found: "Two offers with different keys were answered with one task.",
    },
  ])("is wrong: $found", ({ wrong, found }) => {
    expect(judgeRobots({ ...RIGHT, ...wrong })).toEqual([expect.stringContaining(found)]);
  });
});
