/** Small parts of the gateway: throttles, entity tags, addresses, time, text. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addressText } from "../../gateway/http/client-address.ts";
import { reportCommandId } from "../../gateway/http/command-id.ts";
import { findBrokenText, nestingOf } from "../../gateway/http/parse-request.ts";
import { etagOf, matchesEtag } from "../../gateway/read-model/etag.ts";
import { serverTime } from "../../gateway/read-model/polls.ts";
import { AddressThrottle, MAX_ADDRESSES, takeToken, waitMs } from "../../gateway/read-model/throttles.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";

describe("the token bucket", () => {
  const rate = { intervalMs: 1_000, burst: 10 };

  it("never allows more than its burst and its rate, and returns how long to wait", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3_000), { minLength: 1, maxLength: 200 }), (pausesMs) => {
        let fullAtMs = 0;
        let nowMs = 1e12;
        const taken: number[] = [];
        for (const pauseMs of pausesMs) {
          nowMs += pauseMs;
          const next = takeToken(rate, fullAtMs, nowMs);
          if (next >= 0) {
            fullAtMs = next;
            taken.push(nowMs);
            continue;
          }
          const wait = waitMs(rate, fullAtMs, nowMs);
          expect(wait).toBeGreaterThan(0);
          expect(takeToken(rate, fullAtMs, nowMs + wait)).toBeGreaterThan(0);
          expect(takeToken(rate, fullAtMs, nowMs + wait - 1)).toBe(-1);
        }
        for (const [index, atMs] of taken.entries()) {
          const before = taken[index - rate.burst];
          if (before !== undefined) expect(atMs - before).toBeGreaterThanOrEqual(rate.intervalMs);
        }
      }),
    );
  });

  it("is full when it was never used", () => {
    let fullAtMs = 0;
    for (let token = 0; token < 10; token += 1) fullAtMs = takeToken(rate, fullAtMs, 1e12);
    expect(fullAtMs).toBe(1e12 + 10_000);
    expect(takeToken(rate, fullAtMs, 1e12)).toBe(-1);
  });
});

describe("the throttle of addresses", () => {
  it("stores a limited number, and removes the address without a request for the longest time", () => {
    const throttle = new AddressThrottle({ intervalMs: 6_000, burst: 1 });
    expect(throttle.take("192.0.2.1", 1e12)).toBe(0);
    expect(throttle.take("192.0.2.1", 1e12)).toBe(6_000);
    for (let address = 0; address < MAX_ADDRESSES; address += 1) throttle.take(`a${address}`, 1e12);
    expect(throttle.size).toBe(MAX_ADDRESSES);
    expect(throttle.take("192.0.2.1", 1e12)).toBe(0);
    expect(throttle.take(`a${MAX_ADDRESSES - 1}`, 1e12)).toBe(6_000);
  });

  it("counts an IPv6 client by its /64, in any spelling of its address", () => {
    const throttle = new AddressThrottle({ intervalMs: 6_000, burst: 2 });
    expect(throttle.take("2001:db8:0:1:0:0:0:1", 1e12)).toBe(0);
    throttle.giveBack("2001:db8:0:1::2");
    expect(throttle.take("2001:db8:0:1:ffff:ffff:ffff:ffff", 1e12)).toBe(0);
    expect(throttle.take("2001:db8:0:1::3", 1e12)).toBe(0);
    expect(throttle.take("2001:db8:0:1::4", 1e12)).toBe(6_000);
    expect(throttle.take("2001:db8:0:2::1", 1e12)).toBe(0);
  });
});

describe("addresses", () => {
  it.each([
    [[192, 0, 2, 1], "192.0.2.1"],
    [[...Array<number>(10).fill(0), 0xff, 0xff, 192, 0, 2, 1], "192.0.2.1"],
    [[0x20, 0x01, 0x0d, 0xb8, ...Array<number>(11).fill(0), 1], "2001:db8:0:0:0:0:0:1"],
    [[...Array<number>(15).fill(0), 1], "0:0:0:0:0:0:0:1"],
    [[], ""],
  ])("%j are %s", (bytes, text) => {
    expect(addressText(new Uint8Array(bytes))).toBe(text);
  });
});

describe("entity tags", () => {
  it("are equal exactly for equal views", () => {
    expect(etagOf("a")).toBe(etagOf("a"));
    expect(etagOf("a")).not.toBe(etagOf("b"));
  });

  it("are found in any list that contains them, and in no other", () => {
    const tag = fc.stringMatching(/^[\w-]{1,20}$/);
    fc.assert(
      fc.property(fc.array(tag, { maxLength: 5 }), tag, fc.boolean(), (others, wanted, isStrong) => {
        const etag = `W/"${wanted}"`;
        const list = others.map((other) => `"${other}"`);
        expect(matchesEtag(list.join(", "), etag)).toBe(others.includes(wanted));
        expect(matchesEtag([...list, isStrong ? `"${wanted}"` : etag].join(","), etag)).toBe(true);
      }),
    );
  });
});

describe("server time", () => {
  it("equals the date's value, for any millisecond", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4e12 }), { minLength: 1 }), (moments) => {
        for (const ms of moments) expect(serverTime(ms)).toBe(new Date(ms).toISOString());
      }),
    );
  });
});

describe("text", () => {
  it("text that no database could store: found at any place, by its pointer", () => {
    expect(findBrokenText({ a: [{ "b/c": "x\u0000" }] })).toBe("/a/0/b~1c");
    expect(findBrokenText({ a: "💳", b: [1, null, true, "ok"] })).toBeUndefined();
    expect(findBrokenText({ a: "💳".slice(0, 1) })).toBe("/a");
    expect(findBrokenText({ ok: { "\ud800": 1 } })).toBe("/ok");
  });

  it("nesting: as deep as its brackets outside of strings", () => {
    const depthOf = (value: unknown): number =>
      typeof value !== "object" || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf));
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(nestingOf(JSON.stringify(value))).toBe(depthOf(value));
      }),
    );
  });
});

describe("a report's idempotency key", () => {
  it("any content and any length: each key has one command id of limited length", () => {
    const keys = [
      "a",
      "a\0",
      "a\uFFFD",
      "a\ud800",
      "a\ud801",
      "a\udc00",
      JSON.stringify("a\ud800"),
      "x".repeat(255),
      "x".repeat(256),
      `${"x".repeat(9_999)}y`,
      `${"x".repeat(9_999)}z`,
    ];
    const ids = keys.map((key) => reportCommandId(5, 7, key));
    expect(new Set(ids).size).toBe(keys.length);
    expect(keys.map((key) => reportCommandId(5, 7, key))).toEqual(ids);
    for (const id of ids) expect(id.length).toBeLessThanOrEqual(BOUNDS.commandIdCharacters);
  });
});
