/**
 * The suite against devices. A device that follows the guide passes all checks. A broken device fails its capability and no
 * other. A test run has some checks of two good devices, others each day, and a few broken devices by a seed. With
 * CONFORMANCE_BROKEN=all, as in `npm run soak`, it has all of them.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEVICE_CHECKS } from "../../../clients/conformance/devices/checks.ts";
import type { DeviceUnderTest } from "../../../clients/conformance/devices/device.ts";
import { runDeviceSuite } from "../../../clients/conformance/devices/device-suite.ts";
import type { DeviceKind } from "../../../clients/conformance/devices/device-world.ts";
import { VERSION } from "../../../services/runtime/version.ts";
import { logIn, type Person } from "../../support/people.ts";
import { programEnvironment, runProgram } from "../../support/running-program.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";
import { BROKEN_DEVICES } from "./broken-devices.ts";
import { KitCompanion, KitDisplay } from "./kit-devices.ts";
import { TestCompanion } from "./test-companion.ts";
import { TestDisplay } from "./test-display.ts";

/** How many broken devices a test run has: others each day, and for each only the check that finds it. */
const SHARE = 2;
const isWhole = process.env.CONFORMANCE_BROKEN === "all";
const SEED = Number(process.env.CONFORMANCE_SEED ?? Math.floor(Date.now() / 86_400_000));
const parts = Math.ceil(BROKEN_DEVICES.length / SHARE);
const picked = isWhole ? BROKEN_DEVICES : BROKEN_DEVICES.filter((_, index) => index % parts === SEED % parts);
const RUN_MS = 600_000;
/** Each device that polls fetches its collection. One that does not poll fails checks of other capabilities, too. */
const NEVER_ALONE = "device.takes_collection";

/** The checks of a good device in a test run: those that wait for a few polls at most. */
const QUICK: Readonly<Record<DeviceKind, readonly string[]>> = {
  companion: ["device.keeps_credential", "device.reports_decline", "device.repeats_lost_report", "device.keeps_pace"],
  display: ["device.sends_heartbeats", "device.shows_under_later_fields", "device.shows_paid", "device.enrolls_again"],
};

let system: TestSystem;
let owner: Person;
let folder: TemporaryFolder;
beforeAll(async () => {
  folder = temporaryFolder("devices");
  system = await sharedSystem({ sandboxProvider: true, claims: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

let nth = 0;
async function run(kind: DeviceKind, device: DeviceUnderTest, only?: readonly string[]) {
  const body = { filial_id: system.sandbox.filialId, name: `Device ${nth++}`, currency: "EUR" };
  const { sandbox_id: sandboxId } = await owner.good<{ sandbox_id: number }>("POST", "sandboxes/", { body });
  try {
    return await runDeviceSuite({
      baseUrl: system.baseUrl,
      sandboxId,
      owner: system.owner,
      signal: AbortSignal.timeout(RUN_MS),
      kind,
      device,
      listen: { host: "127.0.0.1", port: 0 },
      ...(only === undefined ? {} : { only }),
    });
  } finally {
    await owner.good("DELETE", `sandboxes/${sandboxId}/`);
  }
}

/** A companion and a display, one of them from the device kit. */
const GOOD_DEVICES = [
  [new TestCompanion(), new KitDisplay()],
  [new KitCompanion(), new TestDisplay()],
] as const;
const good = GOOD_DEVICES.filter((_, index) => isWhole || index === SEED % GOOD_DEVICES.length).flatMap(
  ([companion, display]) => [["companion", companion] as const, ["display", display] as const],
);

describe.concurrent("the suite against a device that follows the guide", () => {
  it.each(good)(
    "%s: passes each of its capabilities, and leaves nothing behind",
    { timeout: RUN_MS },
    async (kind, device) => {
      const { results, capabilities, leftBehind } = await run(kind, device, isWhole ? undefined : QUICK[kind]);
      expect(results.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
      expect(capabilities.every(({ outcome }) => outcome === "passed")).toBe(true);
      expect(leftBehind).toEqual([]);
    },
  );
});

describe("the suite against a broken device", () => {
  it("the broken devices: at least twenty, each with a unique name", () => {
    expect(BROKEN_DEVICES.length).toBeGreaterThanOrEqual(20);
    expect(new Set(BROKEN_DEVICES.map(({ name }) => name)).size).toBe(BROKEN_DEVICES.length);
  });

  it("each check that can fail alone: a broken device that it must find", () => {
    const finding = new Set([...BROKEN_DEVICES.map(({ caughtBy }) => caughtBy), NEVER_ALONE]);
    const ids = Object.values(DEVICE_CHECKS).flatMap((checks) => checks.map(({ id }) => id));
    expect(ids.filter((id) => !finding.has(id))).toEqual([]);
  });

  it.concurrent.each(picked.map((device) => [device.name, device] as const))(
    "%s: fails its capability and no other",
    { timeout: RUN_MS },
    async (_, { kind, caughtBy, shownIn, make }) => {
      const needed = shownIn === undefined ? [caughtBy] : [shownIn, caughtBy];
      const { results, capabilities } = await run(kind, make(), isWhole ? undefined : needed);
      const caught = results.find(({ id }) => id === caughtBy);
      const failures = results.filter(({ outcome }) => outcome !== "passed");
      expect([caught?.id, caught?.outcome], JSON.stringify(failures, null, 1)).toEqual([caughtBy, "failed"]);
      expect(caught?.failure?.curl, "the device's request").toContain("/api/payments/v1/devices/");
      const failed = capabilities.filter(({ outcome }) => outcome === "failed");
      expect(
        failed.map(({ capability }) => capability),
        JSON.stringify(failures, null, 1),
      ).toEqual([caught?.capability]);
    },
  );
});

describe("the conformance command with a device", () => {
  const COMMAND = join(import.meta.dirname, "..", "..", "..", "clients", "conformance.ts");
  const SAMPLE = join(import.meta.dirname, "..", "..", "..", "clients", "device-kit", "samples", "under-test.ts");
  async function conformance(...args: readonly string[]) {
    const { email: OWNER_EMAIL, password: OWNER_PASSWORD } = system.owner;
    const FILE = join(folder.path, "device.json");
    const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OWNER_EMAIL, OWNER_PASSWORD, FILE };
    const program = runProgram(process.execPath, [COMMAND, ...args], { env: programEnvironment(access) });
    return { code: await program.ended, output: program.output() };
  }

  it("a program that operates the display: receives the instructions as lines, and the result names its maker", async () => {
    const body = { filial_id: system.sandbox.filialId, name: "Program", currency: "EUR" };
    const seeded = await owner.good<{ sandbox_id: number; station_id: number }>("POST", "sandboxes/", { body });
    const program = `"${process.execPath}" ${SAMPLE} display`;
    const json = join(folder.path, "result.json");
    const whose = ["--provider", "Acme", "--software", "4.2.0", "--software-sha256", "ab".repeat(32)];
    const what = ["--sandbox", `${seeded.sandbox_id}`, "--device", "display", "--program", program];
    const { code, output } = await conformance(...what, "--only", "device.shows_idle", "--json-file", json, ...whose);
    expect(code, output).toBe(0);
    expect(output).toContain("The display is ready.");
    expect(JSON.parse(readFileSync(json, "utf8"))).toMatchObject({
      suite_version: VERSION,
      contract_sha256: expect.stringMatching(/^[\da-f]{64}$/) as string,
      station_id: seeded.station_id,
      device: { kind: "display", provider: "Acme", version: "4.2.0", sha256: "ab".repeat(32) },
      is_whole: false,
      left_behind: [],
      capabilities: [
        { capability: "enrollment", outcome: "passed" },
        { capability: "display_total", outcome: "passed" },
      ],
    });
  });

  it.each([
    [["--program", "true"], "--program is for a run at a device: give --device too; see --help."],
    [["--listen", "0.0.0.0:9000"], "--listen is for a run at a device: give --device too; see --help."],
    [["--device", "robot"], '--device is companion or display, and not "robot".'],
    [
      ["--device", "display", "--listen", "here"],
      '--listen is an address and a port, as 192.168.1.5:9000, and not "here".',
    ],
    [
      ["--device", "display", "--software-sha256", "ab"],
      "--software-sha256 is a SHA-256 in 64 small hexadecimal digits.",
    ],
    [
      ["--device", "display"],
      "There is no terminal to ask a person at; name the program that controls the device with --program.",
    ],
  ])("%j: exit code 2 and a sentence", async (args, sentence) => {
    const { code, output } = await conformance("--sandbox", "1", ...args);
    expect(output).toBe(`${sentence}\n`);
    expect(code).toBe(2);
  });
});
