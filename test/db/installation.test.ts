import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { checkOwner, claimBus, keepOwnerChecked } from "../../services/bus/installation.ts";
import { readInstallation } from "../../services/db/installation.ts";
import { newInstallation, type TestInstallation } from "../support/installations.ts";
import { comeBackWith } from "../support/nats-data.ts";
import { QUIET } from "../support/quiet-log.ts";
import { copyDatabase, startNats, type TestServer } from "../support/servers.ts";

const REFUSED = { code: "installations_differ" };

describe("the installation that a bus belongs to", () => {
  let nats: TestServer;
  let bus: Bus;
  const undo: (() => Promise<unknown>)[] = [];
  const claim = async ({ url }: Pick<TestInstallation, "url">): Promise<void> =>
    claimBus({ bus, installation: await readInstallation(url) }, { replicas: 1, logs: 1 });
  const add = async (): Promise<TestInstallation> => {
    const installation = await newInstallation();
    undo.push(installation.drop);
    return installation;
  };

  beforeEach(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
    return async () => {
      await bus.close();
      await nats.stop();
    };
  });
  afterAll(async () => {
    await Promise.all(undo.map((step) => step()));
  });

  it("the first one that claims a new bus: accepted each time", async () => {
    const first = await add();
    await claim(first);
    await claim(first);
    await expect(claim(await add())).rejects.toMatchObject(REFUSED);
  });

  it("another one: refused with both names, and nothing on the bus is changed", async () => {
    const [first, second] = [await add(), await add()];
    await claim(first);
    await expect(claim(second)).rejects.toMatchObject({
      code: "installations_differ",
      message: `Two installations meet: the NATS at 127.0.0.1:${nats.port} belongs to ${first.id}, and the database at ${second.name} belongs to ${second.id}; set NATS_URL and DATABASE_URL to servers of the same installation, or empty that NATS if the other database is gone for good.`,
    });
    const streams = await bus.jsm.streams.list().next();
    expect(streams.map(({ config, state }) => [config.name, state.last_seq])).toEqual([["KV_INSTALLATION", 1]]);
    await claim(first);
  });

  it("several processes of two installations at once on a new bus: one installation gets it, the other is refused", async () => {
    const [first, second] = [await add(), await add()];
    const results = await Promise.allSettled([first, second, first, second, first, second].map(claim));
    const claimed = results.map(({ status }) => status === "fulfilled");
    expect(new Set([claimed[0], claimed[2], claimed[4]])).toEqual(new Set([claimed[0]]));
    expect(new Set([claimed[1], claimed[3], claimed[5]])).toEqual(new Set([claimed[0] === false]));
    const refused = results.filter((result) => result.status === "rejected");
    for (const { reason } of refused) expect(reason).toMatchObject(REFUSED);
  });

  it("a server of the cluster does not know the new bucket yet: the id is written when the server knows it", async () => {
    const first = await add();
    let published = 0;
    // Such a server gives the answer for a subject without a stream.
    const publish: Bus["js"]["publish"] = (subject, ...rest) => {
      published += 1;
      return bus.js.publish(published === 1 ? "stored.by.no.stream" : subject, ...rest);
    };
    const late = { ...bus, js: Object.assign(Object.create(bus.js), { publish }) };
    const installation = await readInstallation(first.url);
    await claimBus({ bus: late, installation }, { replicas: 1, logs: 1 });
    expect(published).toBe(2);
    await claim(first);
  });

  it("a copy of its database, such as a restored dump: the same installation", async () => {
    const first = await add();
    await claim(first);
    const copy = await copyDatabase(first);
    await claim(copy);
    await copy.drop();
  });

  it("none, on a new bus: a process is refused with the next step, and changes nothing", async () => {
    const options = { bus, installation: await readInstallation((await add()).url) };
    await expect(checkOwner(options)).rejects.toMatchObject({
      code: "bus_not_migrated",
      message: expect.stringContaining("run `npm run migrate`"),
    });
    expect(await bus.jsm.streams.list().next()).toEqual([]);
  });

  it("the bus has lost its data: the same one may claim it; after another's claim, the process is refused", async () => {
    const [first, second] = [await add(), await add()];
    await claim(first);
    const refusals: unknown[] = [];
    const options = { bus, installation: await readInstallation(first.url) };
    const release = await keepOwnerChecked(options, (error) => refusals.push(error));
    await comeBackWith(nats, undefined);
    await expect.poll(() => claim(first).catch((error: unknown) => error)).toBeUndefined();
    expect(refusals).toEqual([]);
    await comeBackWith(nats, undefined);
    await expect.poll(() => claim(second).catch((error: unknown) => error)).toBeUndefined();
    await expect.poll(() => refusals).toEqual([expect.objectContaining(REFUSED)]);
    release();
  });

  it("another one after a reconnect: the process is refused", async () => {
    const [first, second] = [await add(), await add()];
    await claim(first);
    const refusals: unknown[] = [];
    const options = { bus, installation: await readInstallation(first.url) };
    const release = await keepOwnerChecked(options, (error) => refusals.push(error));
    const changed = await bus.jsm.streams.getMessage("KV_INSTALLATION", { seq: 1 });
    expect(changed?.string()).toBe(first.id);
    await bus.js.publish("$KV.INSTALLATION.id", second.id);
    await nats.kill9();
    await nats.restart();
    await expect.poll(() => refusals).toEqual([expect.objectContaining(REFUSED)]);
    release();
  });
});
