/** Decisions without a network or a database: which deliveries are read ahead, which get a slot, what is signed. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { EndpointWork, type Waiting } from "../../services/webhook-signer/sending/endpoint-work.ts";
import { type Pace, Slots } from "../../services/webhook-signer/sending/slots.ts";
import { envelope, signatureHeader } from "../../services/webhook-signer/signing.ts";
import { expectedSignature, parseSignature } from "./receiver.ts";

describe("deliveries that are read ahead", () => {
  const endpoint = {
    endpoint_id: 1,
    url: "https://example.com/",
    mode: "test",
    generation: 1,
    consecutive_failures: 0,
    times_opened: 0,
    open_until: null,
    failing_since: null,
    failures_since_success: 0,
    has_succeeded: true,
  } as const;
  const due = (delivery_id: number): Waiting => ({
    delivery_id,
    endpoint_id: 1,
    body: "{}",
    attempts: 0,
    manual_attempts: 0,
    asked: 0,
    status: "pending",
    manual_of: null,
    planned_at_ms: null,
    delivered_at_ms: null,
    lapses_at_ms: null,
    lapses_in_ms: null,
    request_id: null,
    lapsesAtMs: null,
    lapsesAtWallMs: null,
    due_at_ms: 0,
  });
  const send = (work: EndpointWork, count: number, tookMs: number): void => {
    for (let at = 0; at < count; at += 1) {
      const { delivery_id: deliveryId } = work.start();
      work.ended({ succeeded: true, status: 200, tookMs }, 0);
      work.release(deliveryId);
    }
  };

  test("many for a fast endpoint, few for a slow one, and none while the process has its maximum", () => {
    const { firstWindow, longestWindow, inHand, fastMs } = SIGNER_LIMITS;
    const all = { count: 0 };
    const work = new EndpointWork(endpoint, all);
    expect(work.wanted(0)).toBe(firstWindow);
    work.filled(
      Array.from({ length: 20 }, (_, at) => due(at + 1)),
      20,
    );
    expect(all.count).toBe(20);
    send(work, 10, 1);
    expect(work.wanted(0)).toBe(longestWindow - 10);
    all.count += inHand;
    expect(work.wanted(0)).toBe(0);
    all.count -= inHand;
    send(work, 10, fastMs);
    expect(work.wanted(0)).toBe(firstWindow);
    expect(all.count).toBe(0);
  });

  test("dropped when they cannot be sent, and when another process holds the owner", () => {
    const all = { count: 0 };
    const work = new EndpointWork(endpoint, all);
    work.filled([due(1), due(2), due(3)], 4);
    work.start();
    work.withdraw();
    work.releaseUnsendable(0);
    expect([...work.inHand]).toEqual([1]);
    expect(all.count).toBe(1);
    work.releaseAll();
    expect(all.count).toBe(0);
  });
});

describe("slots", () => {
  const never = (): void => expect.unreachable("no caller was to be called");

  test("taken up to their number; some are kept for prompt and some for untried targets", () => {
    const slots = new Slots({ count: 6, keptForPrompt: 2, keptForUntried: 1 });
    const take = (pace: Pace, count: number) => Array.from({ length: count }, () => slots.take(pace));
    expect(take("slow", 4)).toEqual([true, true, true, false]);
    expect(take("untried", 2)).toEqual([true, false]);
    expect(take("prompt", 3)).toEqual([true, true, false]);
  });

  test("kept for prompt and untried targets in any order of taking and releasing", () => {
    const pace = fc.constantFrom<Pace>("prompt", "untried", "slow");
    fc.assert(
      fc.property(fc.array(fc.tuple(pace, fc.boolean()), { maxLength: 80 }), (steps) => {
        const slots = new Slots({ count: 10, keptForPrompt: 3, keptForUntried: 2 });
        const taken = { prompt: 0, untried: 0, slow: 0 };
        for (const [one, isTaking] of steps) {
          if (isTaking && slots.take(one)) taken[one] += 1;
          else if (!isTaking && taken[one] > 0) {
            taken[one] -= 1;
            slots.release(one);
          }
          expect(taken.prompt + taken.untried + taken.slow).toBeLessThanOrEqual(10);
          expect(taken.slow).toBeLessThanOrEqual(5);
          expect(slots.hasRoom("prompt") || taken.prompt >= 3).toBe(true);
          expect(slots.hasRoom("untried") || taken.untried >= 2).toBe(true);
        }
      }),
    );
  });

  test("passed to waiting callers, prompt ones first, and to the next caller when one does not take it", () => {
    const slots = new Slots({ count: 2, keptForPrompt: 1, keptForUntried: 0 });
    const called: string[] = [];
    slots.take("prompt", never);
    slots.take("prompt", never);
    slots.take("slow", () => void called.push("slow"));
    slots.take("prompt", () => void called.push("first"));
    slots.take("prompt", () => {
      called.push("second");
      slots.take("prompt", never);
    });
    slots.release("prompt");
    expect(called).toEqual(["first", "second"]);
    slots.release("prompt");
    expect(called).toEqual(["first", "second", "slow"]);
  });

  test("a forgotten caller is not called", () => {
    const slots = new Slots({ count: 1, keptForPrompt: 0, keptForUntried: 0 });
    slots.take("prompt", never);
    slots.take("slow", never);
    slots.forget(never);
    slots.release("prompt");
  });
});

describe("a signature", () => {
  test("follows the contract for each live secret, the newest first", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 2 }),
        fc.json(),
        fc.nat(4e12),
        (secrets, body, nowMs) => {
          const header = signatureHeader(secrets, { body, nowMs });
          const { t, v1 } = parseSignature(header);
          expect(t).toBe(Math.floor(nowMs / 1_000));
          expect(v1).toEqual(secrets.map((secret) => expectedSignature(secret, t, body)));
        },
      ),
    );
  });

  test("covers an envelope whose fields are always in the same order", () => {
    const body = envelope({
      deliveryId: 7,
      eventType: "robotics.paused",
      createdAt: "2026-01-01T00:00:00.000Z",
      payload: {},
    });
    expect(body).toBe(
      '{"delivery_id":7,"event_type":"robotics.paused","created_at":"2026-01-01T00:00:00.000Z","payload":{}}',
    );
  });
});
