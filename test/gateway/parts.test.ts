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

  it("any pauses between requests: never more than its burst and its rate, and the right time to wait", () => {
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

  it("a bucket that was never used: full", () => {
    let fullAtMs = 0;
    for (let token = 0; token < 10; token += 1) fullAtMs = takeToken(rate, fullAtMs, 1e12);
    expect(fullAtMs).toBe(1e12 + 10_000);
    expect(takeToken(rate, fullAtMs, 1e12)).toBe(-1);
  });

  it.each([1, 999])("an empty bucket, and the clock moves back %d ms: it stays empty", (backMs) => {
    expect(takeToken(rate, 1e12 + 10_000, 1e12 - backMs)).toBe(-1);
  });

  it.each([5_000, 3_600_000])(
    "an empty bucket, and the clock is set back %d ms: one token, then its rate",
    (backMs) => {
      const fullAtMs = takeToken(rate, 1e12 + 10_000, 1e12 - backMs);
      expect(fullAtMs).toBe(1e12 - backMs + 10_000);
      expect(takeToken(rate, fullAtMs, 1e12 - backMs)).toBe(-1);
      expect(takeToken(rate, fullAtMs, 1e12 - backMs + 1_000)).toBeGreaterThan(0);
    },
  );
});

describe("the throttle of addresses", () => {
  it("more addresses than its limit: it drops the one without a request for the longest time", () => {
    const throttle = new AddressThrottle({ intervalMs: 6_000, burst: 1 });
    expect(throttle.take("192.0.2.1", 1e12)).toBe(0);
    expect(throttle.take("192.0.2.1", 1e12)).toBe(6_000);
    for (let address = 0; address < MAX_ADDRESSES; address += 1) throttle.take(`a${address}`, 1e12);
    expect(throttle.size).toBe(MAX_ADDRESSES);
    expect(throttle.take("192.0.2.1", 1e12)).toBe(0);
    expect(throttle.take(`a${MAX_ADDRESSES - 1}`, 1e12)).toBe(6_000);
  });

  it("an IPv6 client: counted by its /64, in any spelling of its address", () => {
    const throttle = new AddressThrottle({ intervalMs: 6_000, burst: 2 });
    expect(throttle.take("2001:db8:0:1:0:0:0:1", 1e12)).toBe(0);
    throttle.giveBack("2001:db8:0:1::2");
    expect(throttle.take("2001:db8:0:1:ffff:ffff:ffff:ffff", 1e12)).toBe(0);
    expect(throttle.take("2001:db8:0:1::3", 1e12)).toBe(0);
    expect(throttle.take("2001:db8:0:1::4", 1e12)).toBe(6_000);
    expect(throttle.take("2001:db8:0:2::1", 1e12)).toBe(0);
  });
});

describe("the text of an address", () => {
  it.each([
    [[192, 0, 2, 1], "192.0.2.1"],
    [[...Array<number>(10).fill(0), 0xff, 0xff, 192, 0, 2, 1], "192.0.2.1"],
    [[0x20, 0x01, 0x0d, 0xb8, ...Array<number>(11).fill(0), 1], "2001:db8:0:0:0:0:0:1"],
    [[...Array<number>(15).fill(0), 1], "0:0:0:0:0:0:0:1"],
    [[], ""],
  ])("the bytes %j: %s", (bytes, text) => {
    expect(addressText(new Uint8Array(bytes))).toBe(text);
  });
});

describe("entity tags", () => {
  it("equal views: equal tags; different views: different tags", () => {
    expect(etagOf("a")).toBe(etagOf("a"));
    expect(etagOf("a")).not.toBe(etagOf("b"));
  });

  it("If-None-Match with several tags: matches when one of them is the view's tag", () => {
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

describe("the server's time as text", () => {
  it("any millisecond: the same text as a date's", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4e12 }), { minLength: 1 }), (moments) => {
        for (const ms of moments) expect(serverTime(ms)).toBe(new Date(ms).toISOString());
      }),
    );
  });
});

describe("text in a JSON body", () => {
  it("text that no database could store: found at any place, and reported by its pointer", () => {
    expect(findBrokenText({ a: [{ "b/c": "x\u0000" }] })).toBe("/a/0/b~1c");
    expect(findBrokenText({ a: "💳", b: [1, null, true, "ok"] })).toBeUndefined();
    expect(findBrokenText({ a: "💳".slice(0, 1) })).toBe("/a");
    expect(findBrokenText({ ok: { "\ud800": 1 } })).toBe("/ok");
  });

  it("the depth of nesting: counts brackets outside of strings only", () => {
    const depthOf = (value: unknown): number =>
      typeof value !== "object" || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(depthOf));
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(nestingOf(JSON.stringify(value))).toBe(depthOf(value));
      }),
    );
  });
});

describe("the command id of a report's idempotency key", () => {
  it("keys of any content and length: each has one command id of limited length", () => {
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
