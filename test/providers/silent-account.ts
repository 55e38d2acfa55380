/** A provider server at which some accounts get no answer, and the tasks that such accounts leave in the database. */
import { expect } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import type { AnsweringProvider, Asked } from "./answering-provider.ts";
import type { Scenes } from "./emvco-scene.ts";
import type { Place, ProvidersWorld } from "./providers-world.ts";

/** An order of this amount belongs to an account that gets no answer. */
const SILENT_AMOUNT = "66.60";

/** The provider now answers the account of `configId`, and leaves all requests about silent accounts open. */
export async function answerOneAccount(
  { world, provider }: { readonly world: ProvidersWorld; readonly provider: AnsweringProvider },
  configId: number,
): Promise<void> {
  const [{ account }] = await world.database<[{ account: string }]>`
    select settings ->> 'account' as account from provider_configs where config_id = ${configId}`;
  const created = new Map<string, Readonly<Record<string, unknown>>>();
  provider.answer = ({ method, path, body }: Asked): object | Promise<object> => {
    if (path.includes("silent") || body["amount"] === SILENT_AMOUNT) return new Promise(() => undefined);
    if (method === "GET") return { ...created.get(path.split("/").at(-1) ?? ""), status: "paid" };
    const { reference, amount, currency } = body;
    const payment = { payment_id: `p-${String(reference)}`, reference, account, amount, currency, status: "pending" };
    created.set(String(reference), payment);
    return { ...payment, qr_payload: "QR" };
  };
  await provider.takeOver(world);
}

/** Stores due polls of `count` QRs that are open at a silent account. Each call of one test has another `nth`. */
export async function openDueQrs(
  world: ProvidersWorld,
  { place, configId }: { readonly place: Place; readonly configId: number },
  { count, nth = 0 }: { readonly count: number; readonly nth?: number },
): Promise<void> {
  await world.database`
    with numbers as (select generate_series(1, ${count}) as n),
    opened as (
      insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
        account, amount_minor, currency, expires_at, status, asked_until, provider_reference, qr_payload)
      select ${9_000_000 + nth * 1_000} + n, ${configId}, ${place.organizationId}, ${place.stationId}, 1, ${`silent-${nth}-`} || n,
        'A-silent', 6660, 'EUR', now() + interval '1 hour', 'ready', now(), ${`silent-${nth}-`} || n, 'QR'
      from numbers returning intent_id
    )
    insert into provider_tasks (intent_id, kind, due_at) select intent_id, 'poll', now() - interval '1 minute' from opened`;
}

/** Checks that an account that gets answers gets its QR and its payment while requests of silent accounts are open. */
export async function expectNoDelay(
  {
    world,
    provider,
    scenes,
  }: { readonly world: ProvidersWorld; readonly provider: AnsweringProvider; readonly scenes: Scenes },
  { place, configId }: { readonly place: Place; readonly configId: number },
): Promise<void> {
  await waitFor("silent questions under way", () => provider.asked.length >= 8);
  const startedAtMs = performance.now();
  const intent = await world.openIntent(place, 1203);
  world.stations.collect(intent);
  expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
  expect(performance.now() - startedAtMs).toBeLessThan(2_000);

  await world.database`
    update provider_tasks set due_at = now() where intent_id = ${intent.intentId} and kind = 'poll'`;
  const dueAtMs = performance.now();
  await waitFor("the confirmed payment", async () => (await scenes.salesOf(intent)).length === 1, 20_000);
  expect(performance.now() - dueAtMs).toBeLessThan(2_000);
}
