/** The sample programs of the device kit, against the real service. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { CompanionOptions, Launch } from "../../../clients/device-kit/companion.ts";
import { openTill } from "../../support/people.ts";
import { programEnvironment, type RunningProgram, runProgram } from "../../support/running-program.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

const SAMPLES = join(import.meta.dirname, "..", "..", "..", "clients", "device-kit", "samples");
const WAIT = { timeout: 60_000, interval: 250 };

let system: TestSystem;
let folder: TemporaryFolder;
const running: RunningProgram[] = [];
beforeAll(async () => {
  system = await sharedSystem({ claims: true });
  folder = temporaryFolder("samples");
});
afterAll(async () => {
  for (const program of running) program.process.kill("SIGKILL");
  await system.stop();
  folder.remove();
});

function start(name: string, kind: string): RunningProgram {
  const code = system.sandbox.stations[0]?.devices.find((device) => device.kind === kind)?.enrollmentCode;
  const program = runProgram(process.execPath, [join(SAMPLES, `${name}.ts`)], {
    env: programEnvironment({
      BASE_URL: system.baseUrl,
      CODE: code ?? "",
      FILE: join(folder.path, `${name}.json`),
    }),
  });
  running.push(program);
  return program;
}

describe("the samples of the device kit", () => {
  it("a companion and a display at one station: one collection is made and shown, and both programs end with 0", async () => {
    const companion = start("companion", "smart_pos_companion");
    const display = start("display", "customer_display");
    await Promise.all([companion.waitFor(/ready/), display.waitFor(/Welcome/)]);
    const { cashier, station } = await openTill(system);
    const lines = [{ name: "Soup", quantity: 2, unit_amount: "6.25" }];
    const { order_id } = await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } });
    const intent = await vi.waitUntil(async () => {
      const body = { order_id, route: "smart_pos" };
      const answer = await cashier.call<{ intent_id: number }>("POST", `${station}/intents/`, { body });
      return answer.status === 201 ? answer.body : undefined;
    }, WAIT);
    await companion.waitFor(/launching .* EUR 12\.50[^]*reported reported_success/);
    await display.waitFor(/Order \d+: EUR 12\.50/);
    await cashier.good("POST", `${station}/intents/${intent.intent_id}/attest/`);
    await display.waitFor(/paid EUR 12\.50/);
    for (const program of [companion, display]) {
      program.process.kill("SIGTERM");
      expect(await program.ended).toBe(0);
    }
  });

  it("a companion whose payment has not ended at the deadline: does not know the outcome", async () => {
    let launch: CompanionOptions["launch"] | undefined;
    vi.doMock("../../../clients/device-kit/companion.ts", () => ({
      companion: (options: CompanionOptions) => {
        ({ launch } = options);
        return { stop: () => undefined };
      },
    }));
    await import("../../../clients/device-kit/samples/companion.ts");
    vi.doUnmock("../../../clients/device-kit/companion.ts");
    expect(await launch?.({} as Launch, AbortSignal.abort())).toBeNull();
  });
});
