import { afterAll, beforeAll, it } from "vitest";
import { setTimeout as delay } from "node:timers/promises";
import { startSystem, type TestSystem } from "../../support/system.ts";
let system: TestSystem;
beforeAll(async () => { system = await startSystem(); });
afterAll(() => system.stop());
it("x", async () => {
  const show = async (label: string) => {
    const r = await fetch(system.baseUrl + "/readyz").catch((e: Error) => ({ status: 0, text: async () => e.message }));
    process.stderr.write(`${label} ${r.status} ${await r.text()}\n`);
  };
  await show("start");
  await system.processes.gateway.kill9();
  await system.processes.gateway.restart();
  for (let i = 0; i < 6; i++) { await show(`after ${i}`); await delay(1500); }
  process.stderr.write(system.log("gateway").split("\n").filter((l) => !l.includes('"request"')).join("\n"));
}, 60000);
