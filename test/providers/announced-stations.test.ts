/** Which reports of a provider a station receives: each issue of its intents, also one raised while it did not answer. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import { type Scene, Scenes, SECRET } from "./emvco-scene.ts";
import { type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const noticesOf = ({ intent }: Scene): string[] =>
  world.stations
    .about(intent.intentId)
    .filter(({ command }) => command.type === "provider_money_differs")
    .map(({ commandId }) => commandId);

test("a closed issue without an intent: a matching payment settles nothing, and its intent's station is notified", async () => {
  const scene = await scenes.open();
  await scenes.pay(scene, { reference: "UNKNOWN" });
  await scenes.close(scene.place, await scenes.onlyIssueOf(scene.place));
  await scenes.pay(scene);
  await waitFor("the notice", () => noticesOf(scene).length === 1);
  expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({ status: "closed", intentId: null });
  expect(await scenes.salesOf(scene.intent)).toEqual([]);
});

test("a payment with an issue: another amount notifies the station again, and the same amount does not", async () => {
  const scene = await scenes.open();
  await scenes.pay(scene, { amount: "9.00" });
  await waitFor("the first", () => noticesOf(scene).length === 1);
  await scenes.pay(scene, { amount: "9.00" });
  await scenes.pay(scene, { amount: "8.00" });
  await waitFor("the second", () => noticesOf(scene).length === 2);
  await scenes.pay(scene, { amount: "8.00" });
  const second = await scenes.open(scene);
  await scenes.pay(second, { amount: "7.00", transaction_id: `T-${scene.intent.intentId}` });
  await waitFor("the other intent's", () => noticesOf(second).length === 1);
  expect(new Set(noticesOf(scene)).size).toBe(2);
});

test("a station that does not answer: when it answers again, it is notified of each issue of the intent", async () => {
  const scene = await scenes.open();
  let isBack = false;
  const answer = () => (isBack ? ({ ok: true, type: "accepted" } as const) : ("silence" as const));
  world.stations.answer(scene.intent.intentId, "provider_money_differs", answer);
  await scenes.pay(scene, { amount: "9.00" });
  await waitFor("the first attempt", () => noticesOf(scene).length === 1);
  await scenes.pay(scene, { merchant_id: "M-2", transaction_id: `B-${scene.intent.intentId}` });
  await waitFor("the attempt after it", () => noticesOf(scene).length >= 2);
  // After this time, every attempt that has begun has failed.
  await delay(PROVIDER_LIMITS.stationAttemptMs + 500);
  const whileAway = noticesOf(scene).length;
  isBack = true;
  expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
  const notified = new Set(noticesOf(scene).slice(whileAway));
  const issues = await scenes.issuesOf(scene.place);
  expect([...notified].toSorted()).toEqual(
    issues.map(({ issueId }) => `provider:differ:${scene.intent.intentId}:${issueId}`).toSorted(),
  );
});

/** The intent has ended unpaid, and the provider reports it: its station is asked to clear the order. */
async function declineEnded(scene: Scene, whileClearing: () => Promise<void>): Promise<void> {
  const { intentId } = scene.intent;
  world.stations.answer(intentId, "provider_failed", { ok: false, code: "intent_not_actionable", status: "expired" });
  world.stations.answer(intentId, "provider_cleared", async () => {
    await whileClearing();
    return { ok: true, type: "accepted" };
  });
  const declined = { id: `end-${intentId}`, type: "payment.declined", data: { reference: scene.reference } };
  await scenes.send(scene, JSON.stringify(declined));
}

/** Waits for a notice whose command id matches `end`, and returns the command ids of all notices. */
const noticesUntil = (scene: Scene, end: RegExp): Promise<string[]> =>
  waitFor(`a notice ${end}`, () => noticesOf(scene).some((commandId) => end.test(commandId)) && noticesOf(scene));

describe("an issue that is raised while the station clears the order", () => {
  test("the first notice is answered before the clearing: a second notice follows the clearing", async () => {
    const scene = await scenes.open();
    await declineEnded(scene, async () => {
      await scenes.pay(scene, { amount: "7.00" });
      await scenes.taskEnd(scene.intent, "differ");
    });
    const notices = await noticesUntil(scene, /:cleared/);
    const { issueId } = await scenes.onlyIssueOf(scene.place);
    const first = `provider:differ:${scene.intent.intentId}:${issueId}`;
    expect(notices).toEqual([first, expect.stringMatching(new RegExp(`^${first}:cleared`))]);
  });

  test("the first notice has no answer at the clearing: a second notice follows the clearing", async () => {
    const scene = await scenes.open();
    const firstAnswer = Promise.withResolvers<void>();
    let count = 0;
    world.stations.answer(scene.intent.intentId, "provider_money_differs", async () => {
      count += 1;
      if (count === 1) await firstAnswer.promise;
      return { ok: true, type: "accepted" };
    });
    await declineEnded(scene, async () => {
      await scenes.pay(scene, { amount: "7.00" });
      await waitFor("the first notice", () => noticesOf(scene).length === 1);
    });
    const notices = await noticesUntil(scene, /:cleared/);
    firstAnswer.resolve();
    const { issueId } = await scenes.onlyIssueOf(scene.place);
    const first = `provider:differ:${scene.intent.intentId}:${issueId}`;
    // The first notice has no answer, so the service sends it again before the second one.
    expect(notices).toEqual([first, first, expect.stringMatching(new RegExp(`^${first}:cleared`))]);
  });
});

test("a closed issue, and its payment is asserted while the station clears the order: notified again afterwards", async () => {
  const scene = await scenes.open();
  await scenes.pay(scene, { reference: "UNKNOWN" });
  await scenes.close(scene.place, await scenes.onlyIssueOf(scene.place));
  await declineEnded(scene, async () => {
    await scenes.pay(scene);
    await scenes.taskEnd(scene.intent, "differ");
  });
  const notices = await noticesUntil(scene, /:cleared/);
  expect(notices).toHaveLength(2);
});

test("an issue raised while the station clears the order, and a PostgreSQL error: the station is notified again", async () => {
  const scene = await scenes.open();
  await declineEnded(scene, async () => {
    await scenes.pay(scene, { amount: "7.00" });
    await scenes.taskEnd(scene.intent, "differ");
    await failNextChange(scene, "differ");
  });
  const notices = await noticesUntil(scene, /:cleared/);
  expect(notices).toHaveLength(2);
  expect(scenes.commandTypes(scene.intent).filter((type) => type === "provider_cleared")).toHaveLength(1);
});

/** PostgreSQL refuses the next change of the intent's task of this kind, and accepts the later ones. */
async function failNextChange({ intent: { intentId } }: Scene, kind: string): Promise<void> {
  const name = `fail_${kind}_${intentId}`;
  await world.database.unsafe(`
    create sequence ${name};
    create function ${name}() returns trigger language plpgsql as
      $$ begin if nextval('${name}') = 1 then raise 'refused by the test'; end if; return new; end $$;
    create trigger ${name} before update on provider_tasks for each row
      when (new.intent_id = ${intentId} and new.kind = '${kind}') execute function ${name}();`);
}

test("a callback with an old signature: a recorded body gets the recorded answer, and another body is refused", async () => {
  const scene = await scenes.open();
  const pending = JSON.stringify({ id: "old", type: "payment.pending", data: {} });
  const first = await scenes.send(scene, pending);
  const atMs = Date.now() - 30 * 24 * 3_600_000;
  const { configId } = scene;
  expect(await sendCallback(world, { configId, body: pending, secret: SECRET, atMs })).toEqual(first);
  const body = paidBody(scenes.money(scene, { reference: "UNKNOWN" }), "old");
  const refused = await sendCallback(world, { configId, body, secret: SECRET, atMs });
  expect(refused.status).toBe(401);
  const [refusal] = await world.database`
    select reason from provider_callback_refusals where config_id = ${configId}`;
  expect(refusal).toEqual({ reason: "timestamp_stale" });
  expect(await scenes.issuesOf(scene.place)).toEqual([]);
  expect(await variantsOf(scene)).toEqual({ kept: 0, not_kept: 0 });
  // With a new signature the body is recorded, and its payment raises an issue.
  expect(await scenes.send(scene, body)).toEqual(first);
  expect(await scenes.issuesOf(scene.place)).toHaveLength(1);
});

test("many bodies of one event: a bounded number is recorded, the others are counted, each payment is an issue", async () => {
  const scene = await scenes.open();
  await scenes.send(scene, JSON.stringify({ id: "many", type: "payment.pending", data: {} }));
  const bodies = Array.from({ length: 24 }, (_, nth) =>
    paidBody(scenes.money(scene, { reference: "UNKNOWN", transaction_id: `V-${nth}` }), "many"),
  );
  const answers: unknown[] = [];
  // Eight at once: so many can wait for the row of one event within PostgreSQL's lock timeout.
  for (const few of [bodies.slice(0, 8), bodies.slice(8, 16), bodies.slice(16)]) {
    answers.push(...(await Promise.all(few.map((body) => scenes.send(scene, body)))));
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(await variantsOf(scene)).toEqual({ kept: 20, not_kept: 4 });
  expect(await scenes.issuesOf(scene.place)).toHaveLength(24);
});

async function variantsOf({ configId }: Scene): Promise<unknown> {
  const [row] = await world.database`
    select (select count(*) from provider_callback_variants v where v.callback_id = c.callback_id) as kept,
      variants_not_kept as not_kept
    from provider_callbacks c where config_id = ${configId}`;
  return row;
}
