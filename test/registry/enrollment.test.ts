import { createHash, createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { partitionOf, partitionToken } from "../../machines/partition.ts";
import { getDevice, moveDevice, registerDevice } from "../../services/bus/messages/devices.ts";
import {
  enrollDevice,
  issueEnrollmentCode,
  listEnrollmentCodes,
  revokeEnrollmentCode,
} from "../../services/bus/messages/enrollment-codes.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { operationsGuide } from "../support/guide.ts";
import {
  newActiveDevice,
  newCode,
  newDevice,
  newStation,
  type RegistryFixture,
  refusalOf,
  startRegistry,
} from "./registry-fixture.ts";

let fixture: RegistryFixture;
let stationId: number;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

const claim = (code: string) => fixture.ask(enrollDevice, { address: "127.0.0.1", code });
const freshDevice = async (): Promise<number> => {
  ({ stationId } = await newStation(fixture));
  return (await newDevice(fixture, stationId)).deviceId;
};
const listCodes = async (deviceId: number) =>
  (await fixture.ask(listEnrollmentCodes, { caller: fixture.owner, deviceId })).enrollmentCodes;
const revokeCode = (codeId: number) => fixture.ask(revokeEnrollmentCode, { caller: fixture.owner, codeId });
const letExpire = (deviceId: number) => fixture.sql`
  update enrollment_codes set expires_at = now() - interval '1 second'
  where device_id = ${deviceId} and spent_at is null and revoked_at is null`;

describe("the claim of an open code", () => {
  test("the device gets its credential and scopes, and becomes active", async () => {
    const deviceId = await freshDevice();
    const reply = await claim(await newCode(fixture, deviceId));
    expect(reply).toMatchObject({
      device: { deviceId, stationId, status: "active" },
      station: { stationId },
      scopes: ["device:read", "device:heartbeat", "assignment:read", "assignment:report"],
      barrier: { positions: {}, isUndelivered: true },
    });
    const partition = partitionToken(partitionOf(stationId));
    expect(reply.credential).toMatch(new RegExp(`^dp_${partition}_[A-Za-z0-9_-]{43}$`));
    const { device } = await fixture.ask(getDevice, { caller: fixture.owner, deviceId });
    expect(device.status).toBe("active");
    expect(device.enrolledAtMs).toBeGreaterThan(device.createdAtMs);
  });

  test("a display: gets the scopes of a display", async () => {
    await freshDevice();
    const { device } = await fixture.ask(registerDevice, {
      caller: fixture.owner,
      stationId,
      name: "Display",
      kind: "customer_display",
    });
    const { scopes } = await claim(await newCode(fixture, device.deviceId));
    expect(scopes).toEqual(["device:read", "device:heartbeat", "display:read"]);
  });

  test("the outbox: first the station's update, then the credential's hash, which is the order of their delivery", async () => {
    const deviceId = await freshDevice();
    const { credential } = await claim(await newCode(fixture, deviceId));
    const rows = await fixture.sql<{ kind: string; payload: Record<string, unknown> }[]>`
      select kind, payload from outbox where key = ${`station.${stationId}`} order by outbox_id desc limit 2`;
    const hash = createHash("sha256").update(credential).digest("hex");
    expect(rows).toMatchObject([
      { kind: "credential_put", payload: { hash, entry: { deviceId, stationId } } },
      { kind: "station_command", payload: { command: { type: "device_put", device: { deviceId, status: "active" } } } },
    ]);
  });

  test.each([
    ["in lower case", (code: string) => code.toLowerCase()],
    ["without the hyphen", (code: string) => code.replace("-", "")],
    ["with spaces", (code: string) => ` ${code.replace("-", " ").split("").join(" ")} `],
    [
      "with O for 0 and I and l for 1",
      (code: string) => code.replaceAll("0", "O").replace("1", "I").replaceAll("1", "l"),
    ],
  ])("typed %s: accepted", async (_, typed) => {
    const deviceId = await freshDevice();
    expect((await claim(typed(await newCode(fixture, deviceId)))).device.deviceId).toBe(deviceId);
  });
});

describe("an enrollment code", () => {
  test("ten characters of Crockford's alphabet, valid for fifteen minutes unless the owner sets another time", async () => {
    const deviceId = await freshDevice();
    const issued = await fixture.ask(issueEnrollmentCode, { caller: fixture.owner, deviceId });
    expect(issued.code).toMatch(/^[0-9A-HJKMNP-TV-Z]{5}-[0-9A-HJKMNP-TV-Z]{5}$/);
    const { createdAtMs, expiresAtMs } = issued.enrollmentCode;
    expect(expiresAtMs - createdAtMs).toBe(15 * 60_000);
    const request = { caller: fixture.owner, deviceId, lifetimeMs: 60_000 };
    const { enrollmentCode } = await fixture.ask(issueEnrollmentCode, request);
    expect(enrollmentCode.expiresAtMs - enrollmentCode.createdAtMs).toBe(60_000);
    for (const lifetimeMs of [9_999, 7 * 24 * 3_600_000 + 1]) {
      const refusal = await refusalOf(fixture.ask(issueEnrollmentCode, { ...request, lifetimeMs }));
      expect(refusal).toMatchObject({ code: "invalid_request", errors: [{ pointer: "/lifetimeMs" }] });
    }
  });

  test("a newer code of the same device: the older one is void", async () => {
    const deviceId = await freshDevice();
    const older = await newCode(fixture, deviceId);
    const newer = await newCode(fixture, deviceId);
    expect(await refusalOf(claim(older))).toEqual({ code: "enrollment_code_invalid" });
    expect((await claim(newer)).device.deviceId).toBe(deviceId);
    expect((await listCodes(deviceId)).map((code) => code.status)).toEqual(["spent", "revoked"]);
  });

  test("revoked, also twice: accepted; a spent or expired code: cannot be revoked", async () => {
    const deviceId = await freshDevice();
    const code = await newCode(fixture, deviceId);
    const codeId = (await listCodes(deviceId))[0]?.codeId ?? 0;
    expect((await revokeCode(codeId)).enrollmentCode.status).toBe("revoked");
    expect((await revokeCode(codeId)).enrollmentCode.status).toBe("revoked");
    expect((await listCodes(deviceId))[0]?.status).toBe("revoked");
    expect(await refusalOf(claim(code))).toEqual({ code: "enrollment_code_invalid" });

    await newCode(fixture, deviceId);
    await letExpire(deviceId);
    const [expired] = await listCodes(deviceId);
    expect(expired?.status).toBe("expired");
    expect((await refusalOf(revokeCode(expired?.codeId ?? 0))).code).toBe("conflict");

    await claim(await newCode(fixture, deviceId));
    const statuses = (await listCodes(deviceId)).map((listed) => listed.status);
    expect(statuses).toEqual(["spent", "expired", "revoked"]);
    const spent = (await listCodes(deviceId))[0];
    expect((await refusalOf(revokeCode(spent?.codeId ?? 0))).code).toBe("conflict");
  });

  test("for a device that is not pending: refused", async () => {
    ({ stationId } = await newStation(fixture));
    const { deviceId } = await newActiveDevice(fixture, stationId);
    expect(await refusalOf(newCode(fixture, deviceId))).toEqual({
      code: "conflict",
      detail: "Only a pending device gets a code; this device is active. Reset the device to enroll it again.",
    });
  });
});

const countWritten = async () => {
  const [row] = await fixture.sql`
    select (select count(*) from outbox) as outbox, (select count(*) from registry_events) as events,
      (select count(*) from device_credentials) as credentials`;
  return row;
};

describe("the claim of a code that is not valid", () => {
  test("is refused with the same answer whatever the reason (I10)", async () => {
    const spent = await newCode(fixture, await freshDevice());
    await claim(spent);
    const expiring = await freshDevice();
    const expired = await newCode(fixture, expiring);
    await letExpire(expiring);
    const revoking = await freshDevice();
    const revoked = await newCode(fixture, revoking);
    await revokeCode((await listCodes(revoking))[0]?.codeId ?? 0);
    // A device that is not pending has no open code. If a code stayed open, the claim would be refused like the others.
    const suspending = await freshDevice();
    const ofSuspended = await newCode(fixture, suspending);
    await fixture.sql`update devices set status = 'suspended' where device_id = ${suspending}`;

    const codes = { unknown: "00000-00000", spent, expired, revoked, ofSuspended };
    const malformed = { short: "ABC", empty: "", foreign: "ÄÖÜÄÖ-UUUUU", long: "A".repeat(10_000), zero: "\u0000" };
    for (const [reason, code] of Object.entries({ ...codes, ...malformed })) {
      expect(await refusalOf(claim(code)), reason).toEqual({ code: "enrollment_code_invalid" });
    }
    const [kept] = await fixture.sql`select status from devices where device_id = ${suspending}`;
    expect(kept).toEqual({ status: "suspended" });
  });

  test("a refused claim: writes nothing", async () => {
    const before = await countWritten();
    await refusalOf(claim("00000-00000"));
    expect(await countWritten()).toEqual(before);
  });
});

describe("claims of one code at the same time", () => {
  test("several claims: exactly one succeeds, in each of 25 rounds", async () => {
    for (let round = 0; round < 25; round += 1) {
      const deviceId = await freshDevice();
      const code = await newCode(fixture, deviceId);
      const outcomes = await Promise.allSettled(Array.from({ length: 2 + (round % 3) }, () => claim(code)));
      const won = outcomes.filter((outcome) => outcome.status === "fulfilled");
      expect(won).toHaveLength(1);
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") {
          expect(outcome.reason.refusal).toEqual({ code: "enrollment_code_invalid" });
        }
      }
      const credentials = await fixture.sql<{ hash: string }[]>`
        select encode(credential_hash, 'hex') as hash from device_credentials where device_id = ${deviceId}`;
      const winner = createHash("sha256")
        .update(won[0]?.value.credential ?? "")
        .digest("hex");
      expect(credentials).toEqual([{ hash: winner }]);
    }
  });

  test("a claim and a reset or revocation: the device has no valid credential afterwards", async () => {
    for (let round = 0; round < 20; round += 1) {
      const deviceId = await freshDevice();
      const code = await newCode(fixture, deviceId);
      const move = round % 2 === 0 ? "RESET" : "REVOKE";
      await Promise.allSettled([claim(code), fixture.ask(moveDevice, { caller: fixture.owner, deviceId, move })]);
      const [row] = await fixture.sql`
        select status, (select count(*) from device_credentials c where c.device_id = d.device_id and revoked_at is null)
          as credentials from devices d where device_id = ${deviceId}`;
      expect(row).toEqual(
        round % 2 === 0 ? { status: "pending", credentials: 0 } : { status: "revoked", credentials: 0 },
      );
    }
  });
});

describe("the key for the hashes of codes", () => {
  test("a reader of the table cannot find a code by trying", async () => {
    const key = "a key that is not in the database";
    const keyed = await startRegistry({ environment: { ENROLLMENT_CODE_KEY: key } });
    try {
      const device = await newDevice(keyed, (await newStation(keyed)).stationId);
      const code = await newCode(keyed, device.deviceId);
      const [row] = await keyed.sql<{ hash: string }[]>`
        select encode(code_hash, 'hex') as hash from enrollment_codes where device_id = ${device.deviceId}`;
      const canonical = code.replace("-", "");
      expect(row?.hash).toBe(createHmac("sha256", key).update(canonical).digest("hex"));
      expect(row?.hash).not.toBe(createHash("sha256").update(canonical).digest("hex"));
      expect((await keyed.ask(enrollDevice, { address: "127.0.0.1", code })).device.deviceId).toBe(device.deviceId);
    } finally {
      await keyed.stop();
    }
  });

  test("another key than the other registries have: does not start; the guide's statement lets the next key in", async () => {
    const start = async (environment: NodeJS.ProcessEnv): Promise<void> =>
      await (await startRegistryService({ ...fixture.serviceDeps, environment })).stop();
    const refused = {
      code: "enrollment_code_key_differs",
      message: expect.stringMatching(
        /^ENROLLMENT_CODE_KEY differs .*; to change it, .* follow "Change a secret" in docs\/operations\.md\.$/,
      ),
    };
    const [one, other] = ["the first of two keys", "the second of two keys"].map((key) => ({
      ENROLLMENT_CODE_KEY: key,
    }));
    // The registry of this file has no key.
    await start({});
    await expect(start({ ...one })).rejects.toMatchObject(refused);
    const [, statement = ""] = /psql .* -c '(update installation set \w+ = null)'/.exec(operationsGuide) ?? [];
    await fixture.sql.unsafe(statement);
    const both = await Promise.allSettled([start({ ...one }), start({ ...other })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    await expect(start({})).rejects.toMatchObject(refused);
  });

  test("a key that is too short: refused, without being shown", async () => {
    const deps = { ...fixture.serviceDeps, environment: { ENROLLMENT_CODE_KEY: "short" } };
    await expect(startRegistryService(deps)).rejects.toMatchObject({
      code: "invalid_setting",
      message: expect.not.stringContaining("short"),
    });
  });
});
