/** How the gateway identifies a robotics consumer: which requests it sends on the bus, and what it refuses without one. */
import { beforeAll, describe, expect, it, vi } from "vitest";
import { ConsumerCheck } from "../../gateway/http/caller-checks.ts";
import type { RequestFacts } from "../../gateway/http/request-head.ts";
import { refusalOf } from "../../gateway/http/response.ts";
import { CONSUMER_RATE, CredentialThrottle, UNKNOWN_CONSUMER_RATE } from "../../gateway/read-model/throttles.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { authenticateConsumer, type ConsumerCaller } from "../../services/bus/messages/consumers.ts";
import { call, serve } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { startBus } from "../support/start-bus.ts";
import { SILENT } from "./gateway-world.ts";

const GOOD = `rc_${"g".repeat(43)}`;
const CONSUMER: ConsumerCaller = { consumerId: 1, name: "Fleet", organizationId: 2, filialId: 3, mode: "test" };

let bus: Bus;
/** The scripted robotics service: whether it knows every credential, and the requests that it received. */
let service: { knows: boolean; suspended?: boolean; isAway?: boolean; requests: unknown[] };
beforeAll(async () => {
  const started = await startBus();
  bus = started.bus;
  serve({ nc: bus.nc, log: SILENT, queue: "robotics" }, authenticateConsumer, async (request) => {
    service.requests.push(request);
    if (service.isAway === true) throw new RefusedError({ code: "unavailable" });
    if (service.suspended === true) return { consumer: null, suspended: true };
    return { consumer: service.knows ? CONSUMER : null };
  });
  return started.stop;
});

function startCheck() {
  service = { knows: true, requests: [] };
  const check = new ConsumerCheck({ call: (operation, request) => call(bus.nc, operation, request) });
  const identify = async (authorization: string | undefined, address = "10.0.0.1"): Promise<string> => {
    const headers = authorization === undefined ? {} : { authorization };
    try {
      return (await check.check({ headers, address } as RequestFacts)).name;
    } catch (error) {
      return refusalOf(error).code;
    }
  };
  return { check, identify };
}

describe("a consumer's credential", () => {
  it("a valid credential: the gateway looks it up on every request, by its hash", async () => {
    const { identify } = startCheck();
    for (let count = 0; count < 3; count += 1) expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
    expect(service.requests).toHaveLength(3);
    expect(JSON.stringify(service.requests)).not.toContain(GOOD);
    service.knows = false;
    expect(await identify(`Bearer ${GOOD}`)).toBe("credential_invalid");
    expect(service.requests).toHaveLength(4);
  });

  it("a malformed credential: refused without a request on the bus", async () => {
    const { identify } = startCheck();
    expect(await identify(undefined)).toBe("credential_missing");
    expect(await identify("Basic abc")).toBe("credential_missing");
    expect(await identify("Bearer dp_00_device")).toBe("credential_invalid");
    expect(await identify(`Bearer ${GOOD}x`)).toBe("credential_invalid");
    expect(service.requests).toEqual([]);
  });
});

describe("a consumer after its machine's clock was an hour ahead", () => {
  it("the clock is corrected: the consumer is served at once, and its bucket is not empty for an hour", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    const { identify } = startCheck();
    try {
      expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
    } finally {
      vi.useRealTimers();
    }
    expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
  });
});

describe("a consumer that is suspended", () => {
  it("gets `consumer_suspended` as often as its bucket allows; others at its address are not throttled", async () => {
    const { identify } = startCheck();
    service.suspended = true;
    const pending = Array.from({ length: CONSUMER_RATE.burst + 5 }, () => identify(`Bearer ${GOOD}`));
    const answers = await Promise.all(pending);
    expect(answers.filter((answer) => answer === "consumer_suspended")).toHaveLength(CONSUMER_RATE.burst);
    expect(answers.filter((answer) => answer === "throttled")).toHaveLength(5);
    service.suspended = false;
    const others = Array.from({ length: UNKNOWN_CONSUMER_RATE.burst }, (_, at) =>
      identify(`Bearer rc_${String(at).padStart(43, "n")}`),
    );
    expect(new Set(await Promise.all(others))).toEqual(new Set(["Fleet"]));
  });
});

describe("a fleet that sends its first requests at once", () => {
  it("gets all answers that its bucket allows; the bucket of its address stays full", async () => {
    const { identify } = startCheck();
    for (const letter of ["a", "b", "c"]) {
      const credential = `rc_${letter.repeat(43)}`;
      const pending = Array.from({ length: CONSUMER_RATE.burst }, () => identify(`Bearer ${credential}`));
      expect(new Set(await Promise.all(pending))).toEqual(new Set(["Fleet"]));
    }
    expect(service.requests).toHaveLength(3 * CONSUMER_RATE.burst);
  });
});

describe("fleets of one address while the service is away", () => {
  it("the gateway has restarted and knows no credential: `unavailable`, and never `throttled`", async () => {
    const { check, identify } = startCheck();
    service.isAway = true;
    for (let poll = 0; poll < 2 * UNKNOWN_CONSUMER_RATE.burst; poll += 1)
      expect(await identify(`Bearer ${GOOD}`)).toBe("unavailable");
    service.isAway = false;
    expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
    expect(check.throttledCount).toBe(0);
  });
});

describe("a client that tries credentials", () => {
  it("wrong credentials: a limited number of requests on the bus, and a fleet at the same address is still served", async () => {
    const { check, identify } = startCheck();
    expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
    service.knows = false;
    const codes = new Map<string, number>();
    for (let count = 0; count < 100; count += 1) {
      const code = await identify(`Bearer rc_${String(count).padStart(43, "x")}`);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect([...codes.keys()].toSorted()).toEqual(["credential_invalid", "throttled"]);
    expect(service.requests.length).toBeLessThanOrEqual(UNKNOWN_CONSUMER_RATE.burst + 1);
    expect(check.throttledCount).toBe(codes.get("throttled"));
    service.knows = true;
    expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
    expect(await identify(`Bearer rc_${"n".repeat(43)}`)).toBe("throttled");
    expect(await identify(`Bearer rc_${"n".repeat(43)}`, "10.0.0.2")).toBe("Fleet");
  });

  it("a credential that has ended: counts as a wrong one from then on", async () => {
    const { identify } = startCheck();
    expect(await identify(`Bearer ${GOOD}`)).toBe("Fleet");
    service.knows = false;
    const codes = [];
    for (let count = 0; count < 2 * UNKNOWN_CONSUMER_RATE.burst; count += 1)
      codes.push(await identify(`Bearer ${GOOD}`));
    expect(codes.at(-1)).toBe("throttled");
    expect(service.requests.length).toBeLessThanOrEqual(UNKNOWN_CONSUMER_RATE.burst + 2);
    // The address's bucket is empty, and the credential no longer has a bucket.
    expect(await identify(`Bearer rc_${"n".repeat(43)}`)).toBe("throttled");
    expect(await identify(`Bearer ${GOOD}`, "10.0.0.2")).toBe("credential_invalid");
  });
});

describe("the throttle of credentials", () => {
  it("more credentials than its limit: it drops the one without a request for the longest time", () => {
    const throttle = new CredentialThrottle(CONSUMER_RATE, 3);
    for (const digest of ["a", "b", "a", "c", "d"]) expect(throttle.take(digest, 1_000)).toBe(0);
    expect([throttle.size, throttle.knows("a"), throttle.knows("b")]).toEqual([3, true, false]);
  });

  it("one credential: thirty requests at once, then five a second", () => {
    const throttle = new CredentialThrottle(CONSUMER_RATE, 3);
    const taken = (nowMs: number): number => {
      let count = 0;
      while (throttle.take("a", nowMs) === 0) count += 1;
      return count;
    };
    expect([taken(10_000), taken(10_000), taken(11_000), taken(12_000)]).toEqual([30, 0, 5, 5]);
  });
});
