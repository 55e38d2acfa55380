/** The budgets of refused callbacks: no source uses up the budget of another one. */
import { describe, expect, test } from "vitest";
import { CALLBACK_REFUSAL_RATE } from "../../services/bus/messages/callbacks.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { createRefusalThrottle, type RefusalVerdict } from "../../services/providers/refusal-throttle.ts";

const { refusals, windowMs } = CALLBACK_REFUSAL_RATE;
const { refusalsRecorded, unknownRefusalsRecorded, refusalsAnswered } = PROVIDER_LIMITS;

async function times(count: number, one: (index: number) => Promise<RefusalVerdict>): Promise<RefusalVerdict[]> {
  const verdicts: RefusalVerdict[] = [];
  for (let index = 0; index < count; index += 1) verdicts.push(await one(index));
  return verdicts;
}

describe("refused callbacks", () => {
  test("many of unknown configs: few are recorded, and one of an existing config is still recorded", async () => {
    const throttle = createRefusalThrottle();
    const unknown = await times(refusalsRecorded * 2, (index) =>
      throttle.count({ address: "192.0.2.1", configId: 1_000 + index, isConfigKnown: false }),
    );
    expect(unknown.filter(({ isRecorded }) => isRecorded)).toHaveLength(unknownRefusalsRecorded);
    expect(unknown.every(({ throttledForMs }) => throttledForMs === 0)).toBe(true);
    const real = await throttle.count({ address: "192.0.2.1", configId: 7, isConfigKnown: true });
    expect(real).toEqual({ throttledForMs: 0, isRecorded: true });
  });

  test("existing and unknown configs are throttled alike, separately for each address and config", async () => {
    const throttle = createRefusalThrottle();
    for (const isConfigKnown of [true, false]) {
      const configId = isConfigKnown ? 1 : 2;
      const source = { address: "192.0.2.1", configId, isConfigKnown };
      const verdicts = await times(refusals + 5, () => throttle.count(source));
      const waits = verdicts.map(({ throttledForMs }) => throttledForMs);
      expect(waits.findIndex((wait) => wait > 0)).toBe(refusals);
      for (const wait of waits.slice(refusals)) expect(wait).toBeGreaterThan(windowMs / 2);
      expect((await throttle.count({ ...source, address: "192.0.2.2" })).throttledForMs).toBe(0);
      expect((await throttle.count({ ...source, configId: configId + 10 })).throttledForMs).toBe(0);
    }
  });

  test("addresses of one IPv6 /64 share a budget, and the next /64 has another one", async () => {
    const throttle = createRefusalThrottle();
    const source = { configId: 1, isConfigKnown: true };
    const verdicts = await times(refusals + 1, (index) =>
      throttle.count({ ...source, address: `2001:db8:0:1::${index.toString(16)}` }),
    );
    expect(verdicts.slice(0, -1).every(({ throttledForMs }) => throttledForMs === 0)).toBe(true);
    expect(verdicts.at(-1)?.throttledForMs).toBeGreaterThan(windowMs / 2);
    expect((await throttle.count({ ...source, address: "2001:db8:0:2::1" })).throttledForMs).toBe(0);
  });

  test("very many sources share one budget, so that the memory for sources is bounded", async () => {
    const throttle = createRefusalThrottle();
    const verdicts = await times(refusalsAnswered + 1, (index) =>
      throttle.count({ address: `2001:db8::${index.toString(16)}`, configId: index, isConfigKnown: false }),
    );
    expect(verdicts.slice(0, -1).every(({ throttledForMs }) => throttledForMs === 0)).toBe(true);
    expect(verdicts.at(-1)?.throttledForMs).toBeGreaterThan(0);
  });
});
