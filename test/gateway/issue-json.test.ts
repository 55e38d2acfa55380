/** The JSON of issues: amounts and ages. */
import { describe, expect, test } from "vitest";
import { issueJson, issueSchema } from "../../gateway/api/reconciliation/issue-json.ts";
import type * as bus from "../../services/bus/messages/issues.ts";
import { toIssue } from "../../services/issues/life-cycle.ts";
import type { IssueRow } from "../../services/issues/sql/issues.ts";

const facts = (amountMinor: string, currency: string) => ({
  reference: "",
  providerReference: "tx-1",
  account: "",
  amountMinor,
  currency,
});

const DAY_MS = 24 * 3_600_000;
const NOW_MS = Date.parse("2026-11-28T12:00:00Z");

function issueOf(amountMinor: string, currency: string): bus.Issue {
  const row: IssueRow = {
    issue_id: 1,
    organization_id: 1,
    account_key: "statement:1",
    config_id: null,
    kind: "unmatched_money",
    status: "open",
    source: "statement",
    subject_key: "money:tx-1",
    station_id: null,
    intent_id: null,
    order_id: null,
    amount_minor: amountMinor,
    currency,
    provider_reference: "tx-1",
    evidence: { asserted: facts("1005", currency), statement: { lineIds: [1], differences: [], facts: {} } },
    evidence_hash: "00",
    assignee_id: null,
    supersedes_id: null,
    superseded_by: null,
    opened_at: new Date(0),
    last_seen_at: new Date(0),
    resolved_at: null,
    resolved_by: null,
    reason: null,
    transaction_id: null,
    attribution: null,
    money_names: [],
    said_differently: false,
    proposal: null,
  };
  return toIssue(row);
}

describe("an issue's amount", () => {
  test.each([
    ["1234", "BHD", "1.234", "1.005"],
    ["-5", "KWD", "-0.005", "1.005"],
    ["-1250", "EUR", "-12.50", "10.05"],
    ["1250", "JPY", "1250", "1005"],
    ["999999999999999999", "EUR", "9999999999999999.99", "10.05"],
  ])("%s minor units of %s: all decimals of the currency", (minor, currency, amount, asserted) => {
    const json = issueJson(issueOf(minor, currency), NOW_MS);
    expect(json).toMatchObject({ amount, currency, evidence: { asserted: { amount: asserted } } });
    expect(issueSchema.safeParse(json).success).toBe(true);
  });

  test("an unknown currency: no amount is shown", () => {
    expect(issueJson(issueOf("1250", "QQQ"), NOW_MS)).toMatchObject({ amount: null, currency: "QQQ" });
    expect(issueJson(issueOf("1250", "points"), NOW_MS)).toMatchObject({ amount: null, currency: null });
  });
});

test("an open issue's age: whole days until the time of the bus, not of the machine", () => {
  const issue = issueOf("1250", "EUR");
  expect(issueJson(issue, issue.openedAtMs + 3 * DAY_MS - 1)).toMatchObject({ age_days: 2 });
  expect(issueJson(issue, issue.openedAtMs + 3 * DAY_MS)).toMatchObject({ age_days: 3 });
});
