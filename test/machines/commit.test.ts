/** The bytes of a commit: they are few and exact, and every later version can read them. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import { decodeCommit, encodeCommit, MACHINE_VERSION, NewerMachineError } from "../../machines/station/commit.ts";
import { readStoredReply, readUnclear, writeStoredReply } from "../../machines/station/rows.ts";
import { type StoredReply } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import { commitOf, STORIES } from "./golden-stories.ts";
import { goldenFolder, WORDS } from "./golden-words.ts";
import { checkStep, deepFreeze } from "./invariants.ts";
import { SYSTEM } from "./scenario.ts";

/** A gateway holds a commit's bytes per station in memory; this is the budget for a busy counter. */
const TYPICAL_COMMIT_BYTES = 4_096;

describe("a commit", () => {
  it.each(Object.entries(STORIES))("%s: decoding its bytes gives the same commit", (_name, story) => {
    const commit = commitOf(story);
    expect(decodeCommit(encodeCommit(commit))).toEqual(commit);
  });

  it("a round trip: the same bytes, because the order of the members is part of a commit", () => {
    for (const story of Object.values(STORIES)) {
      const bytes = encodeCommit(commitOf(story));
      expect(encodeCommit(decodeCommit(bytes))).toBe(bytes);
    }
  });

  it("a busy counter with a full memory: fits the budget", () => {
    const commit = commitOf(STORIES["a-full-memory"] ?? (() => expect.unreachable()));
    expect([commit.state.ended.length, commit.state.replies.length, commit.state.knownOrders.length]).toEqual([
      8, 16, 8,
    ]);
    expect(Buffer.byteLength(encodeCommit(commit))).toBeLessThanOrEqual(TYPICAL_COMMIT_BYTES);
  });

  it("a newer machine's commit: refused, not guessed", () => {
    const newer = {
      ...commitOf(STORIES["an-open-order"] ?? (() => expect.unreachable())),
      machineVersion: MACHINE_VERSION + 1,
    };
    expect(() => decodeCommit(encodeCommit(newer))).toThrow(NewerMachineError);
  });

  it("an unclear collection of a version without reason numbers: any confirmation covers it", () => {
    expect(readUnclear([501, 1_001, 7])).toEqual({
      orderId: 501,
      intentId: 1_001,
      reason: "handoff_presented",
      reasonNumber: 0,
    });
    expect(readUnclear([501, 1_001, 7, 1_002])).toMatchObject({ reasonNumber: 0, confirmedFor: 1_002 });
  });

  it("every kind of stored reply: decoding gives the same replies", () => {
    const holder = { cashierId: 31, cashierName: "Casey", sessionId: 61, acquiredAtMs: 1, expiresAtMs: 2 };
    const lost = { cashierId: 32, cashierName: "Robin", reason: "broken", byName: "Olga", atMs: 3 } as const;
    const report = {
      deviceId: 1,
      outcome: "reported_unknown",
      providerReference: "",
      providerCode: "",
      reportedAtMs: 5,
      key: "1ksqz4x.0jr2vf",
    } as const;
    const replies: readonly StoredReply["reply"][] = [
      { ok: true, type: "accepted" },
      { ok: true, type: "lease", lease: null, lostLease: lost },
      { ok: true, type: "lease", lease: holder, lostLease: null },
      { ok: true, type: "intent", intentId: 7, status: "cancelled" },
      { ok: true, type: "report", intentId: 7, report },
      { ok: false, code: "intent_not_actionable", status: "expired" },
      { ok: false, code: "station_leased", holder: "Robin" },
      { ok: false, code: "route_not_offered", reason: "device_offline" },
    ];
    for (const reply of replies) {
      const stored = { commandId: "k", reply };
      expect(readStoredReply(JSON.parse(JSON.stringify(writeStoredReply(stored))))).toEqual(stored);
    }
    const keyed: StoredReply = {
      commandId: "k",
      reply: { ok: true, type: "lease", lease: holder, lostLease: null },
      requestDigest: "1ksqz4x.0jr2vf",
    };
    expect(readStoredReply(JSON.parse(JSON.stringify(writeStoredReply(keyed))))).toEqual(keyed);
  });
});

const VERSIONS = readdirSync(fileURLToPath(new URL("golden", import.meta.url))).map((name) => Number(name.slice(1)));

describe("golden commits", () => {
  it("every machine version up to the current one: has golden commits", () => {
    const expected = Array.from({ length: MACHINE_VERSION }, (_, index) => index + 1);
    expect(
      VERSIONS.toSorted((a, b) => a - b),
      "see write-golden.ts for how to add a version",
    ).toEqual(expected);
  });

  for (const version of VERSIONS) {
    const folder = goldenFolder(version);
    const names = readdirSync(folder).filter((name) => name !== "words.json");

    it.each(names)(`v${version}/%s still decodes and steps`, (name) => {
      const commit = deepFreeze(decodeCommit(readFileSync(`${folder}/${name}`, "utf8")));
      const input = {
        command: { type: "tick" },
        commandId: "golden",
        actor: SYSTEM,
        atMs: commit.atMs + 3_600_000,
        switches: NO_KILL_SWITCHES,
        settings: DEFAULT_MACHINE_SETTINGS,
        recordedConfirmation: "none",
      } as const;
      const after = step(commit.state, input);
      if (after.state === null) expect.unreachable();
      else checkStep(commit.state, input, after);
    });

    it(`v${version}: stored indexes still mean the same words`, () => {
      const words = JSON.parse(readFileSync(`${folder}/words.json`, "utf8")) as Record<string, readonly string[]>;
      for (const [list, then] of Object.entries(words)) expect(WORDS[list]?.slice(0, then.length), list).toEqual(then);
    });
  }

  it.each(Object.entries(STORIES))("%s: committed in the shape of the current version", (name, story) => {
    // The formatter adds white space to the file; only the order of its members and the values are compared.
    const kept: unknown = JSON.parse(readFileSync(`${goldenFolder(MACHINE_VERSION)}/${name}.json`, "utf8"));
    const hint = "The committed shape changed: raise MACHINE_VERSION, see write-golden.ts.";
    expect(encodeCommit(commitOf(story)), hint).toBe(JSON.stringify(kept));
  });
});
