/** What a reason and the details of a place may contain: the same as a name, but longer; details may have several lines. */
import { describe, expect, it } from "vitest";
import { roboticsReasonBodySchema } from "../../gateway/api/backoffice/filial-robotics.ts";
import { createProviderConfigBodySchema } from "../../gateway/api/backoffice/provider-configs.ts";
import { offerServingTaskBodySchema } from "../../gateway/api/backoffice/serving-tasks.ts";
import { closeIssueBodySchema } from "../../gateway/api/reconciliation/issues.ts";
import { pauseFilialRobotics, resumeFilialRobotics } from "../../services/bus/messages/filial-robotics.ts";
import { releaseImport, withdrawImport } from "../../services/bus/messages/import-decisions.ts";
import { attributeIssue, closeIssue, commentIssue } from "../../services/bus/messages/issues.ts";
import { changeProviderConfig } from "../../services/bus/messages/provider-configs.ts";
import { closePeriod } from "../../services/bus/messages/reconciliation-closings.ts";
import { confirmMatch, rejectMatch } from "../../services/bus/messages/reconciliation-matches.ts";
import { detailsSchema, reasonSchema } from "../../services/bus/messages/sentence.ts";
import { cancelServingTask, offerServingTask } from "../../services/bus/messages/serving-tasks.ts";

const caller = { userId: 1, name: "Ada", organizationId: 1, role: "owner" as const, permissions: [] };
const offer = { leg: "courier", manifest: [{ name: "Soup", quantity: 1 }] } as const;

type Check = (text: string) => boolean;
/** Every request field that contains a reason. */
const REASONS: Readonly<Record<string, Check>> = {
  "the API's robotics": (reason) => roboticsReasonBodySchema.safeParse({ reason }).success,
  "the API's issues": (reason) => closeIssueBodySchema.safeParse({ reason }).success,
  "the API's providers": (reason) => {
    const config = { filial_id: 1, kind: "sandbox", mode: "test", name: "A", settings: {} };
    expect(createProviderConfigBodySchema.safeParse(config).success).toBe(true);
    return createProviderConfigBodySchema.safeParse({ ...config, reason }).success;
  },
  "an import's release on the bus": (reason) =>
    releaseImport.request.safeParse({ caller, importId: 1, reason }).success,
  "an import's withdrawal on the bus": (reason) =>
    withdrawImport.request.safeParse({ caller, importId: 1, reason }).success,
  "a period's closing on the bus": (reason) =>
    closePeriod.request.safeParse({ caller, accountId: 1, kind: "day", fromDate: "2026-11-02", reason }).success,
  "a confirmed match on the bus": (reason) =>
    confirmMatch.request.safeParse({ caller, lineIds: [1], paymentKeys: ["payment:1"], reason }).success,
  "a rejected match on the bus": (reason) =>
    rejectMatch.request.safeParse({ caller, lineId: 1, paymentKey: "payment:1", reason }).success,
  "a closing on the bus": (reason) => closeIssue.request.safeParse({ caller, issueId: 1, reason }).success,
  "an attribution on the bus": (reason) =>
    attributeIssue.request.safeParse({ caller, issueId: 1, orderId: 1, reason }).success,
  "a provider's change on the bus": (reason) =>
    changeProviderConfig.request.safeParse({ caller, configId: 1, reason }).success,
  "a cancellation on the bus": (reason) => cancelServingTask.request.safeParse({ caller, taskId: 1, reason }).success,
  "a pause on the bus": (reason) => pauseFilialRobotics.request.safeParse({ caller, filialId: 1, reason }).success,
  "its end on the bus": (reason) => resumeFilialRobotics.request.safeParse({ caller, filialId: 1, reason }).success,
};
const DETAILS: Readonly<Record<string, Check>> = {
  "a comment on the bus": (text) => commentIssue.request.safeParse({ caller, issueId: 1, text }).success,
  "the API": (details) =>
    offerServingTaskBodySchema.safeParse({ consumer_id: 1, ...offer, destination: { name: "A", details } }).success,
  "the bus": (details) => {
    const request = { caller, consumerId: 1, ...offer, validForMs: 60_000, destination: { name: "A", details } };
    return offerServingTask.request.safeParse(request).success;
  },
};
const accepting = (text: string, fields: Readonly<Record<string, Check>>): string[] =>
  Object.entries(fields)
    .filter(([, accepts]) => accepts(text))
    .map(([field]) => field);

describe("a reason and details", () => {
  it.each([
    ["an escape", "\u001b[2JGate 3"],
    ["NUL", "Gate\0"],
    ["a tab", "Gate\t3"],
    ["a carriage return alone", "Gate\r3"],
    ["a C1 control", "Gate\u00853"],
    ["a line separator", "Gate\u20283"],
    ["a right-to-left override", "Gate\u202e3"],
    ["an isolate", "Gate\u20663"],
    ["half a surrogate pair", "Gate\ud800"],
    ["nothing", ""],
    ["nothing but white space", " \n "],
    ["nothing but what cannot be seen", "\u200b\u00ad"],
    ["more than 500 characters", "x".repeat(501)],
  ])("with %s: refused in every field", (_what, text) => {
    expect([accepting(text, REASONS), accepting(text, DETAILS)]).toEqual([[], []]);
  });

  it.each(["喫茶店, 3階", "O’Neill & Søn <2>", "👩‍🍳", "x".repeat(500)])("%s: accepted unchanged", (text) => {
    expect([reasonSchema.parse(text), detailsSchema.parse(text)]).toEqual([text, text]);
    expect([accepting(text, REASONS), accepting(text, DETAILS)]).toEqual([Object.keys(REASONS), Object.keys(DETAILS)]);
  });

  it("a reason has one line; details may have several lines, with the same line ending", () => {
    expect(accepting("Over.\nReally.", REASONS)).toEqual([]);
    expect(accepting("Gate 3\r\nRing twice.", DETAILS)).toEqual(Object.keys(DETAILS));
    expect(detailsSchema.parse("Gate 3\r\nRing twice.\n")).toBe("Gate 3\nRing twice.");
  });
});
