/** Provider configs: who owns them, what is stored of their secrets, and how stations are notified. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { listProviderEvents } from "../../services/bus/messages/provider-events.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { providerSecretPlace } from "../../services/providers/secrets.ts";
import { choose, lockFilial } from "../../services/providers/sql/choices.ts";
import { createProviderConfig } from "../../services/providers/sql/configs.ts";
import { createKeyring } from "../../services/runtime/keyring.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import { waitFor } from "../support/wait-for.ts";
import { newKey, type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

const SECRET = "a-secret-that-is-never-shown-again";
const SETTINGS = emvcoSettings();

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const emvco = ({ owner: caller, filialId }: Place, more: object = {}) =>
  ({ caller, filialId, kind: "emvco_generic", mode: "test", name: "Acquirer", settings: SETTINGS, ...more }) as const;
const create = (place: Place, more: object = {}) => world.ask(configMessages.createProviderConfig, emvco(place, more));

/** The provider updates for a station in the outbox, in order. */
const providerUpdatesOf = async (stationId: number) => {
  const rows = await world.database<{ provider: { configId: number | null; revision: number } }[]>`
    select payload -> 'command' -> 'provider' as provider from outbox
    where key = ${`station.${stationId}`} and payload -> 'command' ->> 'type' = 'provider_put' order by outbox_id`;
  return rows.map((row) => row.provider);
};

async function addStation(place: Place, isSandbox = true): Promise<number> {
  const [row] = await world.database<[{ station_id: number }]>`
    insert into stations (organization_id, filial_id, name, currency, sandbox)
    values (${place.organizationId}, ${place.filialId}, 'Another', 'EUR', ${isSandbox}) returning station_id`;
  return row.station_id;
}

describe("a config's secrets", () => {
  test("creation shows them once; later answers show only that they exist", async () => {
    const place = await world.openPlace();
    const { config, newSecrets } = await create(place);
    const made = newSecrets["callback_secret"] ?? "";
    expect(made).toMatch(/^[\w-]{43}$/);
    const listed = await world.ask(configMessages.listProviderConfigs, { caller: place.owner });
    expect(listed.configs).toEqual([config]);
    expect(config.secrets).toEqual([{ name: "callback_secret", createdAtMs: expect.any(Number), expiresAtMs: null }]);
    expect(JSON.stringify(listed)).not.toContain(made);
  });

  test("an owner's secrets are never returned, and no table holds one in the clear", async () => {
    const place = await world.openPlace();
    const reply = await create(place, { secrets: { callback_secret: SECRET } });
    expect(reply.newSecrets).toEqual({});
    const { configId } = reply.config;
    const next = { caller: place.owner, configId, name: "callback_secret", secret: `${SECRET}-2`, overlapMs: 1_000 };
    expect((await world.ask(configMessages.rotateProviderSecret, next)).newSecrets).toEqual({});
    await world.ask(configMessages.changeProviderConfig, { caller: place.owner, configId, name: "Renamed" });
    const tables = await world.database<{ table_name: string }[]>`
      select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`;
    for (const { table_name } of tables) {
      const [found] = await world.database<[{ count: number }]>`
        select count(*) as count from ${world.database(table_name)} t where to_jsonb(t)::text like ${`%${SECRET}%`}
          or to_jsonb(t)::text like ${`%${Buffer.from(SECRET).toString("hex")}%`}`;
      expect(found.count, table_name).toBe(0);
    }
  });

  test("a sealed secret opens only with its key, for its config and name, and with unchanged bytes", () => {
    const [current, old] = [Buffer.from(newKey(), "base64url"), Buffer.from(newKey(), "base64url")];
    const place = providerSecretPlace({ configId: 1, name: "callback_secret" });
    const keyring = createKeyring(current, [old]);
    const sealed = keyring.seal(place, SECRET);
    expect(keyring.open(place, sealed)).toBe(SECRET);
    expect(keyring.seal(place, SECRET).sealed).not.toEqual(sealed.sealed);
    expect(createKeyring(old, [current]).open(place, sealed)).toBe(SECRET);
    expect(() => createKeyring(old, []).open(place, sealed)).toThrow();
    expect(() => keyring.open(providerSecretPlace({ configId: 2, name: "callback_secret" }), sealed)).toThrow();
    expect(() => keyring.open(providerSecretPlace({ configId: 1, name: "api_key" }), sealed)).toThrow();
    const tampered = Buffer.from(sealed.sealed);
    tampered[0] = (tampered[0] ?? 0) ^ 1;
    expect(() => keyring.open(place, { ...sealed, sealed: tampered })).toThrow();
  });

  test("a start with a new key seals them again, and the old key is no longer needed", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const oldKey = world.environment["PROVIDER_SECRETS_KEY"];
    await world.restartProviders(async () => {
      world.environment["PROVIDER_SECRETS_KEY"] = newKey();
      world.environment["PROVIDER_SECRETS_OLD_KEYS"] = oldKey;
    });
    await world.restartProviders(async () => {
      delete world.environment["PROVIDER_SECRETS_OLD_KEYS"];
    });
    const intent = await world.openIntent(place, 1203);
    expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
  });
});

describe("a sandbox config", () => {
  test("opens an account at the sandbox provider, and a rotation renews its callback secret there", async () => {
    const place = await world.openPlace();
    const request = {
      caller: place.owner,
      filialId: place.filialId,
      kind: "sandbox",
      mode: "test",
      name: "S",
      settings: {},
    } as const;
    const { config, newSecrets } = await world.ask(configMessages.createProviderConfig, request);
    expect(config.settings).toEqual({ account: expect.stringMatching(/^acct_/) });
    expect(Object.keys(newSecrets).toSorted()).toEqual(["api_key", "callback_secret"]);
    const { configId } = config;
    const rotation = { caller: place.owner, configId, name: "callback_secret", overlapMs: 0 };
    const renewed = await world.ask(configMessages.rotateProviderSecret, rotation);
    expect(renewed.newSecrets["callback_secret"]).not.toBe(newSecrets["callback_secret"]);
    const intent = await world.openIntent(place, 1250);
    world.stations.collect(intent);
    await world.askProvider(place, configId, intent);
    await waitFor("a confirmation", () => world.stations.about(intent.intentId).length > 0);
    const own = { ...rotation, secret: SECRET };
    expect((await refusalOf(world.ask(configMessages.rotateProviderSecret, own))).code).toBe("invalid_request");
  });

  test("is for test stations only, and accepts an existing account only with all its fields", async () => {
    const { owner: caller, filialId } = await world.openPlace();
    const request = { caller, filialId, kind: "sandbox", mode: "test", name: "S", settings: {} } as const;
    const refused = async (more: object): Promise<string[]> => {
      const refusal = await refusalOf(world.ask(configMessages.createProviderConfig, { ...request, ...more }));
      expect(refusal.code).toBe("invalid_request");
      return (refusal.errors ?? []).map((error) => error.pointer);
    };
    expect(await refused({ mode: "live" })).toEqual(["/mode"]);
    expect(await refused({ settings: { account: "acct_1" } })).toEqual(["/settings/account"]);
    expect(await refused({ settings: { base_url: "http://169.254.169.254/" } })).toEqual(["/settings/base_url"]);
    expect(await refused({ secrets: { unknown: SECRET } })).toEqual(["/secrets/unknown"]);
    expect(await refused({ secrets: { api_key: "short" } })).toEqual(["/secrets/api_key"]);
    expect(await refused({ name: "" })).toEqual(["/name"]);
  });
});

describe("access to configs", () => {
  test("only the owner of the organization sees and changes them", async () => {
    const place = await world.openPlace();
    const other = await world.openPlace();
    const { config } = await create(place);
    const { configId } = config;
    for (const caller of [place.cashier, place.operator]) {
      expect((await refusalOf(world.ask(configMessages.listProviderConfigs, { caller }))).code).toBe(
        "permission_denied",
      );
      expect((await refusalOf(create({ ...place, owner: caller }))).code).toBe("permission_denied");
      const changed = world.ask(configMessages.changeProviderConfig, { caller, configId, name: "Mine" });
      expect((await refusalOf(changed)).code).toBe("permission_denied");
      const rotated = world.ask(configMessages.rotateProviderSecret, {
        caller,
        configId,
        name: "callback_secret",
        overlapMs: 0,
      });
      expect((await refusalOf(rotated)).code).toBe("permission_denied");
    }
    const caller = other.owner;
    expect((await world.ask(configMessages.listProviderConfigs, { caller })).configs).toEqual([]);
    expect((await refusalOf(create({ ...place, owner: caller }))).code).toBe("not_found");
    expect(
      (await refusalOf(world.ask(configMessages.changeProviderConfig, { caller, configId, name: "Mine" }))).code,
    ).toBe("not_found");
    const rotated = world.ask(configMessages.rotateProviderSecret, {
      caller,
      configId,
      name: "callback_secret",
      overlapMs: 0,
    });
    expect((await refusalOf(rotated)).code).toBe("not_found");
  });

  test("the changes are in the audit log, without a secret", async () => {
    const place = await world.openPlace();
    const { config } = await create(place, { secrets: { callback_secret: SECRET } });
    const { configId } = config;
    const { owner: caller } = place;
    await world.ask(configMessages.changeProviderConfig, { caller, configId, name: "Renamed" });
    await world.ask(configMessages.changeProviderConfig, { caller, configId, name: "Renamed" });
    await world.ask(configMessages.rotateProviderSecret, { caller, configId, name: "callback_secret", overlapMs: 5 });
    await world.ask(configMessages.changeProviderConfig, { caller, configId, status: "disabled" });
    const { events, throughId } = await world.ask(listProviderEvents, { caller, sinceId: 0, limit: 10 });
    expect(throughId).toBeNull();
    expect(events.map(({ action, data }) => [action, data])).toEqual([
      [
        "provider_config_created",
        expect.objectContaining({ name: "Acquirer", mode: "test", secrets: ["callback_secret"] }),
      ],
      ["provider_config_changed", { name: { from: "Acquirer", to: "Renamed" } }],
      ["provider_secret_rotated", { name: "callback_secret", overlap_ms: 5 }],
      ["provider_config_changed", { status: { from: "active", to: "disabled" } }],
    ]);
    expect(events.every(({ actor }) => actor.id === caller.userId && actor.kind === "owner")).toBe(true);
    expect(JSON.stringify(events)).not.toContain(SECRET);
  });
});

describe("notices to stations", () => {
  test("each change is sent to the stations of the filial and the mode, with growing revisions", async () => {
    const place = await world.openPlace();
    const live = await addStation(place, false);
    const { configId } = (await create(place)).config;
    await world.ask(configMessages.changeProviderConfig, { caller: place.owner, configId, status: "disabled" });
    const second = (await create(place)).config.configId;
    expect(await providerUpdatesOf(place.stationId)).toEqual([
      { configId, revision: 1 },
      { configId: null, revision: 2 },
      { configId: second, revision: 3 },
    ]);
    expect(await providerUpdatesOf(live)).toEqual([]);
  });

  test("a station created after the config receives it soon, and once", async () => {
    const place = await world.openPlace();
    const { configId } = (await create(place)).config;
    const later = await addStation(place);
    const live = await addStation(place, false);
    await waitFor("the station is notified", async () => (await providerUpdatesOf(later)).length > 0);
    await world.addProviders();
    expect(await providerUpdatesOf(later)).toEqual([{ configId, revision: 1 }]);
    expect(await providerUpdatesOf(live)).toEqual([]);
  });

  test("a station created at the moment of a change receives the newest config", async () => {
    const place = await world.openPlace();
    const { owner: caller } = place;
    const { configId } = (await create(place)).config;
    const made: number[] = [];
    await Promise.all([
      ...Array.from({ length: 20 }, async () => void made.push(await addStation(place))),
      (async () => {
        for (const status of ["disabled", "active", "disabled"] as const) {
          await world.ask(configMessages.changeProviderConfig, { caller, configId, status });
        }
      })(),
    ]);
    for (const stationId of made) {
      const updates = await waitFor(
        "the newest",
        async () => (await providerUpdatesOf(stationId)).at(-1)?.revision === 4 && providerUpdatesOf(stationId),
      );
      expect(updates.at(-1)).toEqual({ configId: null, revision: 4 });
    }
  });

  test("a station created while a first config is written waits for it and receives it", async () => {
    const place = await world.openPlace();
    const { organizationId, filialId } = place;
    let adding: Promise<number> | undefined;
    await world.database.begin(async (sql) => {
      await lockFilial(sql, { organizationId, filialId });
      const row = {
        organizationId,
        filialId,
        kind: "emvco_generic",
        mode: "test",
        name: "A",
        settings: SETTINGS,
      } as const;
      const { config_id: configId } = await createProviderConfig(sql, row);
      await choose(sql, { filialId, mode: "test", configId });
      adding = addStation(place);
      // In this time, the job would find a committed station without updates.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
    });
    const stationId = (await adding) ?? 0;
    await waitFor("the station is notified", async () => (await providerUpdatesOf(stationId)).length > 0);
  });

  test("the bus has lost its newest data: the station receives the config again, once for each loss", async () => {
    const place = await world.openPlace();
    const { configId } = (await create(place)).config;
    const lose = () => world.database`
      insert into bus_announcements (part, finished_at) values ('stations', clock_timestamp())
      on conflict (part) do update set finished_at = excluded.finished_at`;
    for (const times of [2, 3]) {
      await lose();
      await waitFor(
        "the station is notified again",
        async () => (await providerUpdatesOf(place.stationId)).length === times,
      );
    }
    await waitFor("the recovery's end", async () => {
      const [row] = await world.database<[{ is_over: boolean }]>`
        select r.recovered_at = a.finished_at and r.marked_through = 0 as is_over
        from provider_recovery r, bus_announcements a where a.part = 'stations'`;
      return row.is_over;
    });
    expect(await providerUpdatesOf(place.stationId)).toEqual(
      Array.from({ length: 3 }, () => ({ configId, revision: 1 })),
    );
  });

  test("ten configs created at once for one filial: one is created, the others are refused", async () => {
    const place = await world.openPlace();
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => create(place)));
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
    const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    for (const reason of refused) expect(reason).toMatchObject({ refusal: { code: "conflict" } });
    expect((await refusalOf(create(place))).code).toBe("conflict");
    const { configs } = await world.ask(configMessages.listProviderConfigs, {
      caller: place.owner,
      filialId: place.filialId,
    });
    const [config] = configs;
    expect(configs).toHaveLength(1);
    const { configId } = config ?? { configId: 0 };
    await world.ask(configMessages.changeProviderConfig, { caller: place.owner, configId, status: "disabled" });
    await create(place);
    const again = world.ask(configMessages.changeProviderConfig, { caller: place.owner, configId, status: "active" });
    expect((await refusalOf(again)).code).toBe("conflict");
  });
});

describe("a config of a filial with more stations than one change flushes", () => {
  test("a change: undelivered while a station's row waits; after delivery, its repetition has the position", async () => {
    const place = await world.openPlace();
    const { configId } = (await create(place)).config;
    await Promise.all(Array.from({ length: PROVIDER_LIMITS.flushedStations }, () => addStation(place)));
    const change = { caller: place.owner, configId, status: "disabled" } as const;
    expect((await world.ask(configMessages.changeProviderConfig, change)).barrier).toEqual({
      positions: {},
      isUndelivered: true,
    });
    await world.database`
      update outbox set delivered_at = now(), stream = 'STATION_LOG_0', sequence = 1_000 + outbox_id where delivered_at is null`;
    const [newest] = await world.database<[{ sequence: number }]>`select max(sequence) as sequence from outbox`;
    expect((await world.ask(configMessages.changeProviderConfig, change)).barrier).toEqual({
      positions: { STATION_LOG_0: newest.sequence },
    });
  });
});
