/** Which signatures of callbacks are accepted, how other callbacks are refused, and that a secret belongs to one config. */
import { afterAll, beforeAll, expect, test } from "vitest";
import * as callbackMessages from "../../services/bus/messages/callbacks.ts";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { verifySignature } from "../../services/providers/adapters/callback-signature.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { signature } from "../support/emvco-settings.ts";
import { sendCallback } from "./emvco-callback.ts";
import { Scenes, SECRET } from "./emvco-scene.ts";
import { type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

const BODY = JSON.stringify({ id: "e-1", type: "payment.scanned", data: {} });
const TOLERANCE_MS = PROVIDER_LIMITS.callbackToleranceMs;

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

async function openConfig(): Promise<{ readonly configId: number; readonly owner: Parameters<typeof rotate>[1] }> {
  const place = await world.openPlace();
  return { configId: await scenes.openConfig(place), owner: place.owner };
}

function rotate(configId: number, caller: Parameters<typeof world.openIntent>[0]["owner"], overlapMs: number) {
  return world.ask(configMessages.rotateProviderSecret, { caller, configId, name: "callback_secret", overlapMs });
}

const refusalsOf = (configId: number) =>
  world.database<{ address: string; reason: string }[]>`
    select address, reason from provider_callback_refusals where config_id = ${configId} order by refusal_id`;

test("a signature: valid over the raw bytes, with a live secret, at a time within the tolerance", () => {
  const nowMs = Date.parse("2026-11-21T12:00:00Z");
  const body = Buffer.from('{"a": 1}');
  const verdict = (header: string | undefined, secrets = [SECRET], bytes: Uint8Array = body) =>
    verifySignature({ header, body: bytes }, secrets, nowMs);
  const right = signature('{"a": 1}', SECRET, nowMs);
  expect(verdict(right)).toBe("valid");
  expect(verdict(right, ["another", SECRET])).toBe("valid");
  expect(verdict(`${right},v1=${"0".repeat(64)}`)).toBe("valid");
  expect(verdict(right, ["another"])).toBe("invalid");
  expect(verdict(right, [])).toBe("invalid");
  expect(verdict(right, [SECRET], Buffer.from('{"a":1}'))).toBe("invalid");
  expect(verdict(signature('{"a": 1}', SECRET, nowMs - TOLERANCE_MS))).toBe("valid");
  expect(verdict(signature('{"a": 1}', SECRET, nowMs + TOLERANCE_MS))).toBe("valid");
  expect(verdict(signature('{"a": 1}', SECRET, nowMs - TOLERANCE_MS - 1_000))).toBe("stale");
  expect(verdict(signature('{"a": 1}', SECRET, nowMs + TOLERANCE_MS + 1_000))).toBe("stale");
  expect(verdict(undefined)).toBe("missing");
  expect(verdict("")).toBe("missing");
  // The header has another time than the signed one.
  expect(verdict(right.replace(/^t=\d+/, `t=${nowMs / 1_000 + 1}`))).toBe("invalid");
  for (const broken of ["t=1", "v1=00", "t=x,v1=00", `t=1,t=2,v1=${"0".repeat(64)}`, `${right}${",x=1".repeat(400)}`]) {
    expect(verdict(broken), broken).toBe("invalid");
  }
});

test("a wrong signature and an unknown config: the same answer, recorded with address and reason", async () => {
  const { configId } = await openConfig();
  const wrong = await sendCallback(world, { configId, body: BODY, secret: "another-secret-than-the-right-one" });
  const unknown = await sendCallback(world, { configId: 999_999, body: BODY, secret: SECRET });
  const missing = await sendCallback(world, { configId, body: BODY, secret: SECRET, header: "" });
  const stale = await sendCallback(world, {
    configId,
    body: BODY,
    secret: SECRET,
    atMs: Date.now() - TOLERANCE_MS - 5_000,
  });
  expect(wrong.status).toBe(401);
  expect(JSON.parse(wrong.body)).toMatchObject({ code: "signature_invalid" });
  for (const other of [unknown, missing, stale]) expect(other).toEqual(wrong);
  expect(await refusalsOf(configId)).toEqual(
    ["signature_invalid", "signature_missing", "timestamp_stale"].map((reason) => ({ address: "192.0.2.1", reason })),
  );
  expect(await refusalsOf(999_999)).toEqual([{ address: "192.0.2.1", reason: "config_unknown" }]);
  const rows = await world.database`select 1 from provider_callbacks where config_id = ${configId}`;
  expect(rows).toHaveLength(0);
});

test("wrong signatures: throttled by address and config, and a callback with a valid signature is still accepted", async () => {
  const { configId } = await openConfig();
  const secret = "another-secret-than-the-right-one";
  const { refusals: refusalsPerSource } = callbackMessages.CALLBACK_REFUSAL_RATE;
  const statuses: number[] = [];
  for (let sent = 0; sent < refusalsPerSource + 10; sent += 1) {
    const body = JSON.stringify({ id: `wrong-${sent}`, type: "x" });
    statuses.push((await sendCallback(world, { configId, body, secret, address: "192.0.2.77" })).status);
  }
  expect(statuses.filter((status) => status === 401)).toHaveLength(refusalsPerSource);
  expect(statuses.slice(refusalsPerSource)).toEqual(Array.from({ length: 10 }, () => 429));
  expect(await refusalsOf(configId)).toHaveLength(refusalsPerSource);
  const right = { configId, body: BODY, secret: SECRET, address: "192.0.2.77" };
  expect((await sendCallback(world, right)).status).toBe(200);
  // Another address counts as another source.
  expect((await sendCallback(world, { configId, body: "{}", secret, address: "192.0.2.78" })).status).toBe(401);
});

test("rotations: the old secret is valid until its overlap ends, also after further ones; then only the new one", async () => {
  const { configId, owner } = await openConfig();
  const send = (id: string, secret: string) =>
    sendCallback(world, { configId, body: JSON.stringify({ id, type: "x" }), secret, address: "192.0.2.80" });
  const { newSecrets, config } = await rotate(configId, owner, 60_000);
  const next = newSecrets["callback_secret"] ?? "";
  expect(next.length).toBeGreaterThanOrEqual(43);
  expect(config.secrets.map((secret) => secret.expiresAtMs !== null)).toEqual([false, true]);
  expect((await send("old", SECRET)).status).toBe(200);
  expect((await send("new", next)).status).toBe(200);
  // The owner repeats rotations whose answers were lost: the provider still signs with the first secret.
  const { liveSecrets } = PROVIDER_LIMITS;
  for (let live = 3; live <= liveSecrets; live += 1) {
    expect((await rotate(configId, owner, 60_000)).config.secrets).toHaveLength(live);
  }
  expect(await refusalOf(rotate(configId, owner, 60_000))).toMatchObject({
    code: "conflict",
    detail: expect.stringContaining("an overlap of 0") as string,
  });
  expect((await send("after the others", SECRET)).status).toBe(200);
  const { newSecrets: third } = await rotate(configId, owner, 0);
  expect((await send("second", next)).status).toBe(401);
  expect((await send("third", third["callback_secret"] ?? "")).status).toBe(200);
  // The service accepts callbacks of a disabled config.
  await world.ask(configMessages.changeProviderConfig, { caller: owner, configId, status: "disabled" });
  expect((await send("disabled", third["callback_secret"] ?? "")).status).toBe(200);
});

test("a config without a secret: no callback is accepted, also not one signed with the placeholder in the code", async () => {
  const { configId } = await openConfig();
  await world.database`delete from provider_secrets where config_id = ${configId}`;
  const body = JSON.stringify({ id: "e-2", type: "payment.paid", data: {} });
  expect((await sendCallback(world, { configId, body, secret: "there is no such config" })).status).toBe(401);
});

// A callback secret belongs to one config, so that no signed callback is valid for two of them.
const secretOf = (name: string): string => `a-secret-that-is-long-enough-${name}`;

async function otherFilial(place: Place): Promise<Place> {
  const [{ filial_id: filialId }] = await world.database<[{ filial_id: number }]>`
    insert into filials (organization_id, name) values (${place.organizationId}, 'Other') returning filial_id`;
  return { ...place, filialId };
}

const rotateTo = ({ owner: caller }: Place, configId: number, secret: string) =>
  world.ask(configMessages.rotateProviderSecret, { caller, configId, name: "callback_secret", secret, overlapMs: 0 });

test("a secret that another config has or had: refused, and the answer names that config", async () => {
  const place = await world.openPlace();
  const other = await otherFilial(place);
  const configId = await scenes.openConfig(place, "test", secretOf("one"));
  const refusal = await refusalOf(scenes.openConfig(other, "test", secretOf("one")));
  expect(refusal).toMatchObject({
    code: "conflict",
    detail: expect.stringContaining(`Config ${configId} has`) as string,
  });
  const otherId = await scenes.openConfig(other, "test", secretOf("two"));
  expect((await refusalOf(rotateTo(other, otherId, secretOf("one")))).code).toBe("conflict");
  await rotateTo(place, configId, secretOf("three"));
  expect((await refusalOf(rotateTo(other, otherId, secretOf("one")))).code).toBe("conflict");
  // A config may get a former secret again. A secret of another organization is no conflict.
  await rotateTo(place, configId, secretOf("one"));
  await scenes.openConfig(await world.openPlace(), "test", secretOf("one"));
});

test("several configs are created with the same secret at once: one is created", async () => {
  const place = await world.openPlace();
  const places = [place, await otherFilial(place), await otherFilial(place), await otherFilial(place)];
  const given = await Promise.allSettled(places.map((each) => scenes.openConfig(each, "test", secretOf("same"))));
  expect(given.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});
