/** Simultaneous changes: those of one filial run one after the other, and those of one organization are logged in order. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPERATOR } from "../../services/bus/messages/caller.ts";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { listProviderEvents } from "../../services/bus/messages/provider-events.ts";
import { stationKey } from "../../services/db/outbox.ts";
import { recordEvents } from "../../services/db/provider-audit-log.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { choose, lockFilial, takeMarkedStations } from "../../services/providers/sql/choices.ts";
import { changeProviderConfig } from "../../services/providers/sql/configs.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import { isLockAwaited } from "../support/held-locks.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

const SETTINGS = emvcoSettings();

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const create = async (place: Place, name = "Acquirer"): Promise<number> => {
  const facts = { filialId: place.filialId, kind: "emvco_generic", mode: "test", name, settings: SETTINGS } as const;
  return (await world.ask(configMessages.createProviderConfig, { caller: place.owner, ...facts })).config.configId;
};
const setStatus = ({ owner: caller }: Place, configId: number, status: "active" | "disabled") =>
  world.ask(configMessages.changeProviderConfig, { caller, configId, status });

/** Two configs of one filial, neither of which is used. */
async function twoDisabled(): Promise<{ readonly place: Place; readonly first: number; readonly second: number }> {
  const place = await world.openPlace();
  const first = await create(place);
  await setStatus(place, first, "disabled");
  const second = await create(place);
  await setStatus(place, second, "disabled");
  return { place, first, second };
}

async function addStation({ organizationId, filialId }: Place): Promise<number> {
  const [row] = await world.database<[{ station_id: number }]>`
    insert into stations (organization_id, filial_id, name, currency, sandbox)
    values (${organizationId}, ${filialId}, 'Another', 'EUR', true) returning station_id`;
  return row.station_id;
}

describe("two changes of one filial", () => {
  test("at once: they run one after the other, and the second sees the result of the first", async () => {
    const { place, first, second } = await twoDisabled();
    const { organizationId, filialId } = place;
    const settings = SETTINGS;
    let refused: ReturnType<typeof refusalOf> | undefined;
    await world.database.begin(async (sql) => {
      await lockFilial(sql, { organizationId, filialId });
      await changeProviderConfig(sql, first, { name: "First", settings, status: "active" });
      await choose(sql, { filialId, mode: "test", configId: first });
      refused = refusalOf(setStatus(place, second, "active"));
      refused.catch(() => undefined);
      await waitFor("the second change waits", () => isLockAwaited(world.database));
    });
    expect(await refused).toMatchObject({ code: "conflict", detail: expect.stringContaining("active test config") });
    const { configs } = await world.ask(configMessages.listProviderConfigs, { caller: place.owner, filialId });
    expect(configs.map(({ configId, status }) => [configId, status])).toEqual([
      [first, "active"],
      [second, "disabled"],
    ]);
  });

  test("each activates another config: one becomes active, the other change is refused", async () => {
    const { place, first, second } = await twoDisabled();
    for (let round = 0; round < 10; round += 1) {
      const outcomes = await Promise.allSettled([first, second].map((id) => setStatus(place, id, "active")));
      const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
      expect(refused).toMatchObject([{ refusal: { code: "conflict" } }]);
      const won = outcomes[0]?.status === "fulfilled" ? first : second;
      await setStatus(place, won, "disabled");
    }
  });
});

describe("a change while another process notifies a station of its filial", () => {
  test("waits for that process, and notifies the station when that process has failed", async () => {
    const place = await world.openPlace();
    const configId = await create(place);
    const failed = new Error("the other process has failed");
    let changing: Promise<unknown> | undefined;
    /** Returns the station, or undefined when the service has notified the station first. */
    const announceAndFail = async (): Promise<number | undefined> => {
      const stationId = await addStation(place);
      const announcing = world.database.begin(async (sql) => {
        const taken = await takeMarkedStations(sql, PROVIDER_LIMITS.stationsPerAnnouncement);
        if (!taken.some(({ station_id }) => station_id === stationId)) return;
        changing = world.ask(configMessages.changeProviderConfig, { caller: place.owner, configId, name: "Renamed" });
        await waitFor("the change waits", () => isLockAwaited(world.database));
        throw failed;
      });
      return announcing.then(
        () => undefined,
        (error: unknown) => (error === failed ? stationId : Promise.reject(error)),
      );
    };
    const stationId = await waitFor("a station to be taken", announceAndFail);
    await changing;
    const rows = await world.database`
      select from outbox where key = ${stationKey(stationId)} and payload -> 'command' ->> 'type' = 'provider_put'`;
    expect(rows).toHaveLength(1);
  });
});

describe("the audit log", () => {
  test("a new event: waits for an open transaction with an event of its organization, and comes after that event", async () => {
    const [place, elsewhere] = [await world.openPlace(), await world.openPlace()];
    const { organizationId, owner: caller } = place;
    let isAnswered = false;
    let created: Promise<unknown> = Promise.resolve();
    await world.database.begin(async (sql) => {
      const subject = { kind: "issue", id: 1 } as const;
      await recordEvents(sql, [{ organizationId, actor: OPERATOR, action: "slow_change", subject, data: {} }]);
      created = create(place).finally(() => {
        isAnswered = true;
      });
      await create(elsewhere);
      await waitFor("the config waits", async () => isAnswered || (await isLockAwaited(world.database)));
      expect(isAnswered).toBe(false);
    });
    await created;
    const { events } = await world.ask(listProviderEvents, { caller, sinceId: 0 });
    expect(events.map(({ action }) => action)).toEqual(["slow_change", "provider_config_created"]);
  });

  test("a reader during simultaneous changes: it reads every event", async () => {
    const place = await world.openPlace();
    const { owner: caller } = place;
    const configIds = [await create(place)];
    await setStatus(place, configIds[0] ?? 0, "disabled");
    configIds.push(await create(place));
    let isWorking = true;
    const workers = Promise.all(
      configIds.map(async (configId) => {
        for (let round = 0; round < 10; round += 1) {
          await world.ask(configMessages.changeProviderConfig, { caller, configId, name: `Round ${round}` });
          await world.ask(configMessages.rotateProviderSecret, {
            caller,
            configId,
            name: "callback_secret",
            overlapMs: 0,
          });
        }
      }),
    ).finally(() => {
      isWorking = false;
    });
    const seen: number[] = [];
    for (let isLast = false; !isLast; ) {
      isLast = !isWorking;
      const sinceId = seen.at(-1) ?? 0;
      const { events } = await world.ask(listProviderEvents, { caller, sinceId, limit: 500 });
      seen.push(...events.map((event) => event.eventId));
    }
    await workers;
    const rows = await world.database<{ event_id: number }[]>`
      select event_id from provider_events where organization_id = ${place.organizationId} order by event_id`;
    expect(rows.length).toBe(43);
    expect(seen).toEqual(rows.map((row) => row.event_id));
  });
});
