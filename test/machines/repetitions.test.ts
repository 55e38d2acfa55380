/** A repeated command whose reply has left the state: the intent itself has the answer (I6). */

import { describe, expect, it } from "vitest";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { renderReply } from "../../machines/station/render-reply.ts";
import { aServedCounter, CASEY, COMPANION, ORDER, type Scenario } from "./scenario.ts";

/** Pushes every reply out of the state. */
function forgetReplies(counter: Scenario): Scenario {
  for (let turn = 0; turn < STATE_LIMITS.replies; turn += 1) counter.waits(1).leased();
  return counter;
}

const answerOf = (counter: Scenario, recalled?: PaymentIntent) => {
  if (counter.reply === undefined) throw new Error("There is no reply.");
  return renderReply(counter.station, counter.reply, recalled);
};

const create = (counter: Scenario) =>
  counter.send({ type: "intent_create", route: "smart_pos", intentId: 7_001, order: ORDER }, CASEY, "create");
const report = (counter: Scenario) =>
  counter.send(
    { type: "intent_report", intentId: 7_001, outcome: "reported_success", providerReference: "R", providerCode: "00" },
    COMPANION,
    "report",
  );
const attest = (counter: Scenario) => counter.send({ type: "intent_attest", intentId: 7_001 }, CASEY, "attest");
const settled = (counter: Scenario) => attest(counter).settles(9_001, 7_001);
/** So many long reports that the texts of the first ones leave the state. */
const reportAtLength = (counter: Scenario) => {
  for (let turn = 1; turn <= 6; turn += 1)
    counter.reports("reported_unknown", { intentId: 7_001, reference: `${turn}${"7".repeat(16_000)}` });
  return counter;
};
const expire = (counter: Scenario) => counter.waits(24 * 3_600_000).ticks();
const cancel = (counter: Scenario) => counter.send({ type: "intent_cancel", intentId: 7_001 }, CASEY, "cancel");

describe("a repetition whose reply has left the state", () => {
  it.each([
    ["a creation, its intent active", create, []],
    ["a creation, its intent paid", create, [report, settled]],
    ["a creation, its intent cancelled", create, [cancel]],
    ["a creation, its intent expired", create, [expire]],
    ["a creation, its intent with reports whose text has left the state", create, [reportAtLength]],
    ["a report, its intent active", report, []],
    ["a report, its intent paid", report, [settled]],
    ["a cancellation", cancel, []],
  ] as const)("%s: the same answer and nothing happens", (_, command, then) => {
    const counter = aServedCounter();
    if (command !== create) create(counter);
    const first = answerOf(command(counter));
    expect(first).toBeDefined();
    for (const step of then) step(counter.waits(1_000));
    forgetReplies(counter);
    command(counter.waits(1_000));
    expect([counter.repeated, counter.happened]).toEqual([true, []]);
    expect(answerOf(counter)).toEqual(first);
  });

  it("an attestation: the repetition gets the seam's answer", () => {
    const counter = settled(report(create(aServedCounter())));
    forgetReplies(counter);
    attest(counter);
    expect(counter.happened).toEqual([]);
    expect(answerOf(counter)).toMatchObject({
      reply: { ok: true, status: "succeeded" },
      intent: { status: "succeeded" },
    });
  });

  it("an intent that the host has recalled: the same answer, without the lease, and nothing happens", () => {
    const counter = create(aServedCounter());
    const first = answerOf(counter);
    settled(report(counter));
    const [recalled] = counter.station.ended;
    counter.order({ orderId: 502, orderDisplayNumber: 8 });
    for (let times = 0; times < STATE_LIMITS.endedIntents; times += 1) counter.picks("cash").cancels();
    forgetReplies(counter).releases();
    expect(counter.station.ended.map(({ intentId }) => intentId)).not.toContain(7_001);
    counter.recalled = recalled;
    create(counter);
    expect([counter.happened, answerOf(counter, recalled)]).toEqual([[], first]);
    expect(report(counter).reply).toMatchObject({ ok: true, type: "report" });
    expect(attest(counter).reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(counter.happened).toEqual([]);
  });

  it("another key: it is another command", () => {
    const counter = forgetReplies(cancel(create(aServedCounter())));
    counter.send({ type: "intent_cancel", intentId: 7_001 }, CASEY, "another");
    expect(counter.reply).toMatchObject({ ok: false, code: "intent_not_actionable", status: "cancelled" });
    counter.send(
      {
        type: "intent_report",
        intentId: 7_001,
        outcome: "reported_success",
        providerReference: "R",
        providerCode: "00",
      },
      COMPANION,
      "another",
    );
    expect(counter.happened).toEqual(["late_evidence_kept"]);
  });
});
