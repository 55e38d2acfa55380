/** A callback secret belongs to one config, so that no signed callback is valid for two of them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { Scenes } from "./emvco-scene.ts";
import { type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const secretOf = (name: string): string => `a-secret-that-is-long-enough-${name}`;

async function otherFilial(place: Place): Promise<Place> {
  const [{ filial_id: filialId }] = await world.database<[{ filial_id: number }]>`
    insert into filials (organization_id, name) values (${place.organizationId}, 'Other') returning filial_id`;
  return { ...place, filialId };
}

const rotate = ({ owner: caller }: Place, configId: number, secret: string) =>
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
  expect((await refusalOf(rotate(other, otherId, secretOf("one")))).code).toBe("conflict");
  await rotate(place, configId, secretOf("three"));
  expect((await refusalOf(rotate(other, otherId, secretOf("one")))).code).toBe("conflict");
  // A config's former secret may be set again, and other organizations' secrets do not matter.
  await rotate(place, configId, secretOf("one"));
  await scenes.openConfig(await world.openPlace(), "test", secretOf("one"));
});

test("two configs that get one secret at once: one has it", async () => {
  const place = await world.openPlace();
  const places = [place, await otherFilial(place), await otherFilial(place), await otherFilial(place)];
  const given = await Promise.allSettled(places.map((each) => scenes.openConfig(each, "test", secretOf("same"))));
  expect(given.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});
