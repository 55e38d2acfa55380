import { describe, expect, it } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { CallbackLanes } from "../../gateway/read-model/callback-lanes.ts";
import type { ReleaseSlot } from "../../services/runtime/fair-slots.ts";

const NOW_MS = 1_790_000_000_000;
const PROVIDER = "192.0.2.7";
const { newCallbacksInFlight, newCallbacksWaiting } = LIMITS;

interface Flood {
  /** The callbacks that got a slot, in the order in which they got it. */
  readonly entered: { readonly address: string; readonly release: ReleaseSlot }[];
  refused: number;
}

/** Sends callbacks at once, divided between that many addresses and that many configs. */
async function flood(
  lanes: CallbackLanes,
  {
    callbacks,
    addresses,
    configs,
  }: { readonly callbacks: number; readonly addresses: number; readonly configs: number },
): Promise<Flood> {
  const sent: Flood = { entered: [], refused: 0 };
  const enter = async (nth: number): Promise<void> => {
    const sender = nth % addresses;
    const address = `198.51.${Math.floor(sender / 250)}.${sender % 250}`;
    const release = await lanes.enter({ configId: 1 + (nth % configs), address }, NOW_MS);
    if (release === undefined) sent.refused += 1;
    else sent.entered.push({ address, release });
  };
  for (let nth = 0; nth < callbacks; nth += 1) void enter(nth);
  await settled();
  return sent;
}

const settled = (): Promise<void> => new Promise(setImmediate);

describe("the lanes of callbacks: which callback gets a slot", () => {
  it.each([
    ["one config", 1],
    ["invented configs", 5_000],
  ])(
    "a flood for %s that holds every slot for new senders: a verified sender gets a slot at once",
    async (_what, configs) => {
      const lanes = new CallbackLanes();
      lanes.verified({ configId: 1, address: PROVIDER }, NOW_MS);
      const { refused } = await flood(lanes, { callbacks: 5_000, addresses: 500, configs });
      expect(refused).toBeGreaterThan(0);
      for (let nth = 0; nth < LIMITS.verifiedCallbacksInFlightPerConfig; nth += 1) {
        expect(await lanes.enter({ configId: 1, address: PROVIDER }, NOW_MS)).toBeTypeOf("function");
      }
    },
  );

  it("a verified sender: it counts as verified for its config only, and for a limited time", async () => {
    const lanes = new CallbackLanes();
    lanes.verified({ configId: 1, address: PROVIDER }, NOW_MS);
    await flood(lanes, { callbacks: 5_000, addresses: 200, configs: 5_000 });
    // A sender that is not verified still gets a slot here: the last free one for new senders.
    expect(await lanes.enter({ configId: 3, address: "203.0.113.1" }, NOW_MS)).toBeTypeOf("function");
    const entered: string[] = [];
    const enter = (what: string, configId: number, atMs: number): void =>
      void lanes
        .enter({ configId, address: PROVIDER }, atMs)
        .then((release) => release !== undefined && entered.push(what));
    enter("another config", 2, NOW_MS);
    enter("later", 1, NOW_MS + LIMITS.verifiedSenderMs + 1);
    enter("in time", 1, NOW_MS + LIMITS.verifiedSenderMs);
    await settled();
    expect(entered).toEqual(["in time"]);
  });

  it("a new sender behind a flood of few addresses waits for one turn of each address", async () => {
    const lanes = new CallbackLanes();
    const addresses = 20;
    const { entered, refused } = await flood(lanes, { callbacks: 3_000, addresses, configs: 3_000 });
    expect(refused).toBe(3_000 - entered.length - newCallbacksWaiting);
    const entering = lanes.enter({ configId: 77, address: PROVIDER }, NOW_MS);
    for (const { release } of entered.slice(0, addresses)) release();
    await settled();
    expect(await Promise.race([entering, Promise.resolve("still waiting")])).toBeTypeOf("function");
  });

  it("one address holds no more than half of the slots for new senders, with any number of configs", async () => {
    const { entered } = await flood(new CallbackLanes(), { callbacks: 1_000, addresses: 1, configs: 1_000 });
    expect(entered).toHaveLength(newCallbacksInFlight / 2);
  });

  it("a flood that fills the queue: another callback of its address gets no slot, without a wait", async () => {
    const lanes = new CallbackLanes();
    const { entered } = await flood(lanes, { callbacks: 2_000, addresses: 1, configs: 2_000 });
    const beganAtMs = performance.now();
    expect(await lanes.enter({ configId: 9_999, address: "198.51.0.0" }, NOW_MS)).toBeUndefined();
    expect(performance.now() - beganAtMs).toBeLessThan(LIMITS.newCallbackWaitMs);
    expect(entered).not.toHaveLength(0);
  });

  it("callbacks without a usable signature: each address gets a few slots at once, and no more", () => {
    const lanes = new CallbackLanes();
    const { unsignedCallbacksInFlightPerAddress: few } = LIMITS;
    const held = Array.from({ length: few + 1 }, () => lanes.enterUnsigned("198.51.100.1"));
    expect(held.map((release) => release !== undefined)).toEqual([...Array.from({ length: few }, () => true), false]);
    expect(lanes.enterUnsigned(PROVIDER)).toBeTypeOf("function");
    held[0]?.();
    expect(lanes.enterUnsigned("198.51.100.1")).toBeTypeOf("function");
  });
});
