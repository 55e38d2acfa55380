/** SPEC.md is complete and correct: it names every word of the machines, and every test that it names exists. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { paymentIntentMachine } from "../../machines/intent-machine.ts";
import { LEASE_STATES, leaseMachine } from "../../machines/lease.ts";
import { LIVENESS_STATES, livenessMachine } from "../../machines/liveness.ts";
import { END_REASONS, INTENT_STATES, ROUTES, UNCLEAR_REASONS } from "../../machines/payment-intent.ts";
import { SERVING_TASK_EVENTS, SERVING_TASK_STATUSES } from "../../machines/serving-task.ts";
import { DEFAULT_MACHINE_SETTINGS, STATE_LIMITS } from "../../machines/settings.ts";
import {
  BLOCKED_REASONS,
  DEVICE_STATUSES,
  deviceStandingMachine,
  STATION_STATUSES,
  stationStandingMachine,
} from "../../machines/standing.ts";
import { STATION_COMMAND_TYPES } from "../../machines/station/finality.ts";
import { REFUSAL_CODES, WITHDRAWAL_REASONS } from "../../machines/station/reply.ts";
import { BREAKINGS, DISABLED_REASONS } from "../../machines/webhook-breaker.ts";
import { DELIVERY_STATES, webhookDeliveryMachine } from "../../machines/webhook-delivery.ts";
import { STATION_EVENT_TYPES } from "./vocabulary.ts";

const fromRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const spec = readFileSync(fromRoot("machines/SPEC.md"), "utf8");
/** The text without its diagrams: a word counts only when the prose or a table names it. */
const prose = spec.replaceAll(/```[^]*?```/g, "");
const named = new Set([...prose.matchAll(/`([^`]+)`/g)].map(([, word]) => word));

/** One line of the invariants' tables: `| I1 | what | file | test |`. */
const rows = spec
  .split("\n")
  .filter((line) => /^\| [IM]\d+ +\|/.test(line))
  .map((line) => {
    const [, number = "", what = "", file = "", title = ""] = line.split("|").map((cell) => cell.trim());
    return { number, what, file: file.replaceAll("`", ""), title };
  });

/** Whether the file has a test with this title or a title that begins with it. */
function hasTitle(path: string, title: string): boolean {
  return readFileSync(fromRoot(path), "utf8").includes(`"${title}`);
}

describe("SPEC.md", () => {
  const WORDS: Record<string, readonly string[]> = {
    "every state of the payment intent": INTENT_STATES,
    "every event of the payment intent": paymentIntentMachine.events,
    "every route": ROUTES,
    "every state of the lease": LEASE_STATES,
    "every event of the lease": leaseMachine.events,
    "every state of liveness": LIVENESS_STATES,
    "every event of liveness": livenessMachine.events,
    "every station status": STATION_STATUSES,
    "every event of station standing": stationStandingMachine.events,
    "every device status": DEVICE_STATUSES,
    "every event of device standing": deviceStandingMachine.events,
    "every command": STATION_COMMAND_TYPES,
    "every event of a station": STATION_EVENT_TYPES,
    "every end reason": END_REASONS,
    "every reason of an unclear collection": UNCLEAR_REASONS,
    "every refusal": REFUSAL_CODES,
    "every reason of a route": WITHDRAWAL_REASONS,
    "every blocked reason": BLOCKED_REASONS,
    "every status of a serving task": SERVING_TASK_STATUSES,
    "every event of a serving task": SERVING_TASK_EVENTS,
    "every state of a webhook delivery": DELIVERY_STATES,
    "every event of a webhook delivery": webhookDeliveryMachine.events,
    "every state of a breaker": BREAKINGS,
    "every reason that disables an endpoint": DISABLED_REASONS,
    "every setting": Object.keys(DEFAULT_MACHINE_SETTINGS),
  };
  it.each(Object.entries(WORDS))("names each of %s", (_what, words) => {
    expect(words.filter((word) => !named.has(word))).toEqual([]);
  });

  it("names every bound with its number", () => {
    const stated = [...spec.matchAll(/`(\w+)` (\d+)\b/g)].map(([, name, limit]) => `${name} ${limit}`);
    const bounds = Object.entries(STATE_LIMITS).map(([name, limit]) => `${name} ${limit}`);
    expect(stated.toSorted()).toEqual(bounds.toSorted());
  });
});

describe("the invariants of SPEC.md", () => {
  it("the design's invariants: numbered I1 to I15 without a gap", () => {
    const numbers = new Set(rows.map(({ number }) => number).filter((number) => number.startsWith("I")));
    expect([...numbers]).toEqual(Array.from({ length: 15 }, (_, index) => `I${index + 1}`));
  });

  it("the machines' invariants: numbered without a gap", () => {
    const ofMachines = rows.map(({ number }) => number).filter((number) => number.startsWith("M"));
    const numbers = [...new Set(ofMachines)];
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => `M${index + 1}`));
    expect(numbers.length).toBeGreaterThanOrEqual(13);
  });

  it.each(rows)("$number: names a test that exists: $title", ({ file, title }) => {
    expect(existsSync(fromRoot(file)), `${file} exists`).toBe(true);
    expect(hasTitle(file, title), `${file} has a test called "${title}"`).toBe(true);
  });
});
