/** A device's reference and code are kept verbatim up to the length of a request, and the state stays small. */
import { describe, expect, it } from "vitest";
import { withinText } from "../../machines/report-text.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { encodeCommit } from "../../machines/station/commit.ts";
import { aServedCounter, type Scenario } from "./scenario.ts";

/** As much as a request body of 16 KiB can hold. */
const LONGEST = 16 * 1_024;
/** The most memory that one station takes in a gateway, whatever its device sends. A busy counter takes 4 KiB. */
const LARGEST_COMMIT_BYTES = 160 * 1_024;
const long = (turn: number): string => `${turn}-${"7".repeat(LONGEST - 4)}`;
const collected = (counter: Scenario, turn: number): Scenario =>
  counter
    .order({ orderId: 600 + turn, orderDisplayNumber: turn })
    .leased()
    .picks("smart_pos")
    .reports("reported_success", { reference: long(turn), key: `report:${turn}` })
    .attests()
    .settles(9_000 + turn);

describe("a list that keeps the newest entries whose texts fit together", () => {
  const most = STATE_LIMITS.olderReportText;
  it.each([
    ["the two newest are as long as the bound", [1, most - 1, 1], [most - 1, 1]],
    ["the two newest are one character too long", [most - 1, 2], [2]],
    ["the newest alone is too long", [1, most + 1], []],
    ["all fit", [1, 2], [1, 2]],
  ])("%s", (_, lengths, kept) => {
    expect(withinText(lengths, (length) => length)).toEqual(kept);
  });
});

describe("the reports of a current collection", () => {
  it("a report as long as a request: it is kept verbatim, and the attestation inherits it", () => {
    const counter = aServedCounter()
      .picks("smart_pos")
      .reports("reported_success", { reference: long(1), code: "00" });
    expect(counter.intent?.reports).toMatchObject([{ providerReference: long(1), providerCode: "00" }]);
    expect(counter.attests().settles().intent?.attestation?.reference).toBe(long(1));
  });

  it("many long reports: the newest one and the newest with a reference are kept, the others only as far as they fit", () => {
    const counter = aServedCounter().picks("smart_pos");
    for (let turn = 1; turn <= 8; turn += 1) counter.reports("reported_unknown", { reference: long(turn) });
    counter.reports("reported_unknown", { code: "68" }).reports("reported_declined", { code: long(9) });
    expect(
      counter.intent?.reports.map(({ providerReference, providerCode }) => providerReference || providerCode),
    ).toEqual([long(8), "68", long(9)]);
    expect(counter.intent?.reportCount).toBe(10);
  });

  it("many reports of the usual length: as many as the bound allows are kept", () => {
    const counter = aServedCounter().picks("smart_pos");
    for (let turn = 1; turn <= 12; turn += 1)
      counter.reports("reported_unknown", { reference: `RRN-20495731900${turn}` });
    expect(counter.intent?.reports).toHaveLength(STATE_LIMITS.activeReports);
  });
});

describe("a repetition of a report whose text has left the state", () => {
  const report = (counter: Scenario, turn: number) =>
    counter.reports("reported_unknown", { reference: long(turn), key: `report:${turn}` });

  it.each([
    ["while the intent is active", (counter: Scenario) => counter],
    ["after its end", (counter: Scenario) => counter.cancels()],
  ])("%s: it gets the first answer, and nothing happens", (_, then) => {
    const counter = aServedCounter().picks("smart_pos");
    const first = report(counter, 1).reply;
    for (let turn = 2; turn <= STATE_LIMITS.formerReports; turn += 1) report(counter.waits(1_000), turn);
    then(counter);
    const before = counter.state;
    expect(before?.ended[0]?.reports ?? counter.intent?.reports).not.toContainEqual(
      expect.objectContaining({ providerReference: long(1) }),
    );
    expect(report(counter, 1).reply).toEqual(first);
    expect([counter.repeated, counter.state]).toEqual([true, before]);
  });

  it("another text under its key: the first outcome without a text, because the station has not recorded this one", () => {
    const counter = aServedCounter().picks("smart_pos");
    const first = report(counter, 1).reply;
    for (let turn = 2; turn <= 9; turn += 1) report(counter, turn);
    counter.cancels().reports("reported_success", { reference: "RRN-2", code: "00", key: "report:1" });
    const { key, reportedAtMs } = counter.intent?.formerReports[0] ?? expect.unreachable();
    const texts = { providerReference: "", providerCode: "" };
    expect(first).toMatchObject({ report: { key, reportedAtMs } });
    expect(counter.reply).toEqual({
      ok: true,
      type: "report",
      intentId: 1_001,
      report: { key, deviceId: 701, outcome: "reported_unknown", reportedAtMs, ...texts },
    });
    expect(counter.repeated).toBe(true);
  });

  it("more such reports than the bound: the station knows as many as the bound allows", () => {
    const counter = aServedCounter().picks("smart_pos");
    for (let turn = 1; turn <= 50; turn += 1) report(counter, turn);
    expect(counter.intent?.formerReports).toHaveLength(STATE_LIMITS.formerReports);
  });
});

describe("ended collections with long texts", () => {
  it("long texts: older collections leave the state earlier, and the newest one stays", () => {
    const counter = aServedCounter();
    for (let turn = 1; turn <= 3; turn += 1) collected(counter, turn);
    expect(counter.station.ended.map(({ intentId }) => intentId)).toEqual([1_003]);
    counter.order({ orderId: 700 }).picks("cash").attests().settles(9_900);
    expect(counter.station.ended).toHaveLength(1);
  });

  it("texts of usual length: as many collections as the bound allows are kept", () => {
    const counter = aServedCounter();
    for (let turn = 1; turn <= 10; turn += 1) counter.picks("cash").cancels();
    expect(counter.station.ended).toHaveLength(STATE_LIMITS.endedIntents);
  });
});

describe("a commit", () => {
  it("a station whose device always reports as much as it can: stays within its bound", () => {
    const counter = aServedCounter();
    for (let turn = 1; turn <= 10; turn += 1) collected(counter, turn);
    counter.order({ orderId: 800 }).leased().picks("smart_pos");
    for (let turn = 20; turn <= 40; turn += 1)
      counter.reports("reported_unknown", {
        reference: turn === 39 ? long(turn) : "",
        code: turn === 39 ? "" : long(turn),
      });
    counter.attests();
    const largest = counter.commits.reduce(
      (bytes, commit) => Math.max(bytes, Buffer.byteLength(encodeCommit(commit))),
      0,
    );
    expect(largest).toBeGreaterThan(4 * LONGEST);
    expect(largest).toBeLessThanOrEqual(LARGEST_COMMIT_BYTES);
  });
});
