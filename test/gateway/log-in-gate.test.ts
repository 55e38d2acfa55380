/** Which log-ins the gateway forwards to the registry. Each test sets whether its log-ins succeed. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { LogInGate } from "../../gateway/http/log-in-gate.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { LOG_IN_RATE } from "../../gateway/read-model/throttles.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";

const TOKEN = "a".repeat(22);
const GUEST = { email: "guest@example.com", address: "192.0.2.1", browserTokens: [] };
const CASHIER = { email: "cashier@example.com", address: "192.0.2.1", browserTokens: [] };

function startGate(nowMs = () => 1_000_000) {
  const gate = new LogInGate(nowMs);
  const forwarded: string[] = [];
  const forward = <T>(attempt: typeof CASHIER | { browserTokens: string[] }, answer: () => Promise<T>) =>
    gate
      .run({ ...CASHIER, ...attempt }, async () => {
        forwarded.push("passed");
        await answer();
        return { browserToken: TOKEN };
      })
      .then(
        () => "done",
        (error: { code?: string; refusal?: { code: string } }) => error.code ?? error.refusal?.code,
      );
  const wrong = (attempt: object = GUEST) =>
    forward({ ...GUEST, ...attempt }, () => Promise.reject(new RefusedError({ code: "login_failed" })));
  const withoutPlace = (attempt: object = GUEST) =>
    forward({ ...GUEST, ...attempt }, () => Promise.reject(new RefusedError({ code: "busy" })));
  return {
    gate,
    forwarded,
    forward,
    wrong,
    withoutPlace,
    right: (attempt: object = CASHIER) => forward({ ...CASHIER, ...attempt }, async () => true),
  };
}

async function useUp(wrong: (attempt?: object) => Promise<unknown>, attempt?: object): Promise<void> {
  for (let nth = 0; nth < LOG_IN_RATE.burst; nth += 1) expect(await wrong(attempt)).toBe("login_failed");
}

describe("the gate of log-ins", () => {
  it("an address with too many wrong log-ins: the next one is throttled and not forwarded", async () => {
    const { gate, forwarded, wrong } = startGate();
    await useUp(wrong);
    expect(await wrong()).toBe("login_throttled");
    expect(forwarded).toHaveLength(LOG_IN_RATE.burst);
    expect(gate.throttledCount).toBe(1);
  });

  it("IPv6 addresses with too many wrong log-ins: throttled by their /64; the next /64 is not throttled", async () => {
    const { wrong } = startGate();
    await useUp(wrong, { address: "2001:db8:1:1::1" });
    expect(await wrong({ address: "2001:db8:1:1::2" })).toBe("login_throttled");
    expect(await wrong({ address: "2001:db8:1:2::1" })).toBe("login_failed");
  });

  it("an account at an address where it has logged in: not throttled by wrong log-ins of others at the address", async () => {
    const { wrong, right } = startGate();
    expect(await right()).toBe("done");
    await useUp(wrong);
    expect(await wrong()).toBe("login_throttled");
    expect(await right()).toBe("done");
    expect(await right({ address: "192.0.2.2", browserTokens: [TOKEN] })).toBe("done");
  });

  it("a browser with a token at a gateway that has just started: not throttled by wrong log-ins without a token", async () => {
    const { wrong, right } = startGate();
    await useUp(wrong);
    expect(await right()).toBe("login_throttled");
    expect(await right({ browserTokens: [TOKEN] })).toBe("done");
  });

  it("the clock is set back an hour, also while a log-in is under way: the next log-ins are forwarded", async () => {
    const aheadMs = 3_600_000;
    let nowMs = aheadMs;
    const { wrong, right, gate } = startGate(() => nowMs);
    await useUp(wrong);
    expect(await right({ address: "192.0.2.2" })).toBe("done");
    nowMs = 0;
    expect(await wrong()).toBe("login_failed");
    expect(await wrong()).toBe("login_throttled");
    expect(await right({ address: "192.0.2.2" })).toBe("done");
    nowMs = LOG_IN_RATE.intervalMs;
    expect(await wrong()).toBe("login_failed");
    nowMs = aheadMs;
    const logIn = async () => {
      nowMs = 0;
      return { browserToken: TOKEN };
    };
    await gate.run({ ...GUEST, address: "192.0.2.3" }, logIn);
    expect(await wrong({ address: "192.0.2.3" })).toBe("login_failed");
  });

  it("log-ins for which the registry has no place: not counted, at a known place either", async () => {
    const { wrong, right, withoutPlace } = startGate();
    for (let nth = 0; nth < 2 * LOG_IN_RATE.burst; nth += 1) expect(await withoutPlace()).toBe("busy");
    await useUp(wrong);
    const known = { ...CASHIER, address: "192.0.2.2" };
    expect(await right(known)).toBe("done");
    for (let nth = 0; nth < 2 * LOG_IN_RATE.burst; nth += 1) expect(await withoutPlace(known)).toBe("busy");
    expect(await right(known)).toBe("done");
  });

  it("log-ins that get no slot in time: not counted", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { forward, wrong } = startGate();
    const { promise, reject } = Promise.withResolvers<never>();
    const attempts = Array.from({ length: LOG_IN_RATE.burst }, () => forward(GUEST, () => promise));
    await vi.advanceTimersByTimeAsync(LIMITS.logIns.maxWaitMs);
    vi.useRealTimers();
    reject(new RefusedError({ code: "login_failed" }));
    const answers = await Promise.all(attempts);
    const failed = answers.filter((answer) => answer === "login_failed").length;
    expect(answers.filter((answer) => answer === "busy")).toHaveLength(LOG_IN_RATE.burst - failed);
    for (let nth = failed; nth < LOG_IN_RATE.burst; nth += 1) expect(await wrong()).toBe("login_failed");
    expect(failed).toBeLessThan(LOG_IN_RATE.burst);
    expect(await wrong()).toBe("login_throttled");
  });

  it("a flood from many addresses that gets no place: the first attempt of another address does not wait behind it", async () => {
    const { forward, forwarded, withoutPlace } = startGate();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { total, perKey } = LIMITS.logIns.first;
    const addresses = Array.from({ length: total / perKey }, (_, at) => ({ address: `198.51.100.${at}` }));
    for (const address of [...addresses, ...addresses]) expect(await withoutPlace(address)).toBe("busy");
    const flood = addresses.flatMap((address) =>
      Array.from({ length: perKey }, () => forward({ ...GUEST, ...address }, () => promise)),
    );
    await nextTurn();
    const before = forwarded.length;
    const first = forward(CASHIER, () => promise);
    await nextTurn();
    expect(forwarded).toHaveLength(before + 1);
    resolve(true);
    expect(new Set(await Promise.all([first, ...flood]))).toEqual(new Set(["done"]));
  });

  it("log-ins that succeed, and log-ins that no service answers: not counted", async () => {
    const { gate, right } = startGate();
    const email = (nth: number) => `cashier-${nth}@example.com`;
    for (let nth = 0; nth < 2 * LOG_IN_RATE.burst; nth += 1) expect(await right({ email: email(nth) })).toBe("done");
    const down = () => gate.run(GUEST, () => Promise.reject(new UnavailableError("registry.logIn", undefined)));
    for (let nth = 0; nth < 2 * LOG_IN_RATE.burst; nth += 1) await expect(down()).rejects.toThrow(UnavailableError);
  });
});
