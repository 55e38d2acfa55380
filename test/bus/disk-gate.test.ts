/** Which operations a service refuses while its disk is short of space. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { setDisk, WAITS } from "../../services/bus/disk-gate.ts";
import * as catalogueItems from "../../services/bus/messages/catalogue-items.ts";
import * as conformanceRuns from "../../services/bus/messages/conformance-runs.ts";
import * as consumers from "../../services/bus/messages/consumers.ts";
import * as devices from "../../services/bus/messages/devices.ts";
import * as enrollmentCodes from "../../services/bus/messages/enrollment-codes.ts";
import * as filials from "../../services/bus/messages/filials.ts";
import * as orders from "../../services/bus/messages/orders.ts";
import * as organizations from "../../services/bus/messages/organizations.ts";
import * as providerConfigs from "../../services/bus/messages/provider-configs.ts";
import * as sandboxes from "../../services/bus/messages/sandboxes.ts";
import * as servingTasks from "../../services/bus/messages/serving-tasks.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import * as statementImports from "../../services/bus/messages/statement-imports.ts";
import * as stations from "../../services/bus/messages/stations.ts";
import * as users from "../../services/bus/messages/users.ts";
import * as webhookDeliveries from "../../services/bus/messages/webhook-deliveries.ts";
import * as webhookEndpoints from "../../services/bus/messages/webhook-endpoints.ts";
import { call, repeatable, serve } from "../../services/bus/operation.ts";
import type { DiskTier } from "../../services/runtime/disk-watch.ts";
import { startNats, type TestServer } from "../support/servers.ts";

const log = { info: () => undefined, warn: () => undefined, error: vi.fn<() => void>() };
let nats: TestServer;
let service: Bus;
let client: Bus;
let tier: DiskTier = "ok";

beforeAll(async () => {
  nats = await startNats();
  const connect = (name: string): Promise<Bus> => connectBus({ url: nats.url, name, log });
  [service, client] = await Promise.all([connect("service"), connect("client")]);
  setDisk(service.nc, { tier: () => tier, freeBytes: () => 0 });
});
afterAll(async () => {
  await Promise.all([service.close(), client.close()]);
  await nats.stop();
});

/** Calls an operation with this subject at each tier of the disk. Returns each reply or refusal. */
async function answers(subject: string): Promise<Record<DiskTier, unknown>> {
  const operation = repeatable(subject, z.object({}), z.object({ done: z.literal(true) }));
  const served = serve({ nc: service.nc, log, queue: "test" }, operation, async () => ({ done: true as const }));
  await service.nc.flush();
  const found: Partial<Record<DiskTier, unknown>> = {};
  for (const each of ["ok", "low", "reserve", "full"] as const) {
    tier = each;
    found[each] = await call(client.nc, operation, {}).catch((error: { refusal: unknown }) => error.refusal);
  }
  served.unsubscribe();
  return found as Record<DiskTier, unknown>;
}

const DONE = { done: true };
const REFUSED = { code: "storage_low", retryAfterMs: 10_000 };

describe("while the disk is short of space", () => {
  test.each([
    "registry.registerDevice",
    "providers.ensureTestConfig",
    "registry.seedSandboxStation",
    "registry.startConformanceRun",
  ])("%s: the service refuses it below the reserve", async (subject) => {
    expect(await answers(subject)).toEqual({ ok: DONE, low: DONE, reserve: REFUSED, full: REFUSED });
  });

  test("a new order: the service refuses it only on a full disk", async () => {
    expect(await answers("settlement.openOrder")).toEqual({ ok: DONE, low: DONE, reserve: DONE, full: REFUSED });
  });

  test.each(["settlement.settleIntent", "registry.setKillSwitch", "registry.logIn", "providers.receiveCallback"])(
    "%s: the service never refuses it",
    async (subject) => {
      expect(await answers(subject)).toEqual({ ok: DONE, low: DONE, reserve: DONE, full: DONE });
    },
  );

  test("the list of refused subjects: each is the subject of an operation", () => {
    const modules = [
      catalogueItems,
      conformanceRuns,
      devices,
      enrollmentCodes,
      filials,
      stations,
      organizations,
      providerConfigs,
      consumers,
      servingTasks,
      statementImports,
      orders,
      sandboxes,
      sessions,
      users,
      webhookDeliveries,
      webhookEndpoints,
    ];
    const subjects = modules.flatMap((module) =>
      Object.values<unknown>(module).flatMap((value) =>
        typeof value === "object" && value !== null && "subject" in value ? [value.subject] : [],
      ),
    );
    expect(subjects).toEqual(expect.arrayContaining([...WAITS.keys()]));
  });
});
