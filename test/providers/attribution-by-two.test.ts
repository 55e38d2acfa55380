/** Attributions by two people: above the organization's limit, one person proposes, and another one confirms or rejects. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as limitMessages from "../../services/bus/messages/attribution-limits.ts";
import * as proposalMessages from "../../services/bus/messages/attribution-proposals.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import * as issues from "../../services/bus/messages/issues.ts";
import { changeOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import { listProviderEvents } from "../../services/bus/messages/provider-events.ts";
import { ISSUE_LIMITS } from "../../services/issues/limits.ts";
import { lockDecisions } from "../../services/issues/sql/lines-of-money.ts";
import { aloneUnlessSet } from "../../services/providers/attribution-limits.ts";
import { carryOut } from "../support/carry-out-twice.ts";
import { reasonOf } from "../support/refusal-of.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import { Scenes, SECRET } from "./emvco-scene.ts";
import { type Intent, type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

const REASON = "The guest showed the receipt";
/** Above the default limit, which applies when the owner has set none. */
const LARGE = 25_000;

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

interface Scene {
  readonly place: Place;
  readonly second: Caller;
  readonly third: Caller;
  readonly issueId: number;
  readonly order: Intent;
  readonly configId: number;
  readonly reference: string;
}

let strays = 0;
async function openScene(amountMinor = LARGE): Promise<Scene> {
  const place = await world.openPlace();
  const configId = await scenes.openConfig(place);
  const reference = `BIG-${(strays += 1)}`;
  await assert({ configId, reference }, amountMinor);
  const [issue] = (await world.ask(issues.listIssues, { caller: place.operator, limit: 10 })).issues;
  if (issue === undefined) throw new Error("There is no issue.");
  const person = (userId: number, name: string) => ({ ...place.operator, userId, name });
  return {
    place,
    second: person(700_001, "Sara"),
    third: person(700_002, "Tom"),
    issueId: issue.issueId,
    order: await world.openIntent(place, amountMinor),
    configId,
    reference,
  };
}

async function assert(about: Pick<Scene, "configId" | "reference">, amountMinor: number): Promise<void> {
  const body = paidBody({
    reference: "UNKNOWN",
    transaction_id: about.reference,
    merchant_id: "M-1",
    amount: (amountMinor / 100).toFixed(2),
    currency: "EUR",
  });
  expect((await sendCallback(world, { configId: about.configId, body, secret: SECRET })).status).toBe(200);
}

const propose = async ({ place, issueId, order }: Scene, asked: { caller?: Caller; reason?: string } = {}) => {
  const { caller = place.operator, reason = REASON } = asked;
  const request = { caller, issueId, orderId: order.orderId, reason };
  return (await world.ask(proposalMessages.proposeAttribution, request)).issue;
};
/** The id of a new proposal. */
const proposed = async (scene: Scene): Promise<number> => (await propose(scene)).proposal?.proposalId ?? 0;
const confirm = async (scene: Scene, proposalId: number, caller = scene.second) =>
  (await world.ask(proposalMessages.confirmAttribution, { caller, issueId: scene.issueId, proposalId })).issue;
const reject = async (scene: Scene, proposalId: number, caller = scene.second, reason = "Another order") =>
  (await world.ask(proposalMessages.rejectAttribution, { caller, issueId: scene.issueId, proposalId, reason })).issue;
const withdraw = async (scene: Scene, proposalId: number, caller = scene.place.operator) =>
  (await world.ask(proposalMessages.withdrawAttribution, { caller, issueId: scene.issueId, proposalId })).issue;
const attribute = ({ place, issueId, order }: Scene, caller = place.operator) =>
  world.ask(issues.attributeIssue, { caller, issueId, orderId: order.orderId, reason: REASON });
const setLimit = ({ place }: Scene, aloneUpToMinor: string | null, reason = "As agreed") =>
  world.ask(limitMessages.setAttributionLimit, { caller: place.owner, currency: "EUR", aloneUpToMinor, reason });
const read = async ({ place, issueId }: Scene) => await world.ask(issues.getIssue, { caller: place.operator, issueId });
const actions = async (scene: Scene) => (await read(scene)).steps.map(({ action }) => action);
const transactions = ({ order }: Scene) =>
  world.database<{ attested_by: number }[]>`select attested_by from transactions where order_id = ${order.orderId}`;

test("a run of the reconciliation keeps the lock of decisions: attributing and proposing are refused as busy", async () => {
  const [alone, large] = [await openScene(Number(aloneUnlessSet("EUR"))), await openScene()];
  const busy = { code: "busy", retryAfterMs: ISSUE_LIMITS.lockedRetryMs };
  await world.database.begin(async (tx) => {
    for (const { place } of [alone, large]) await lockDecisions(tx, place.organizationId);
    expect(await Promise.all([attribute(alone), propose(large)].map(refusalOf))).toMatchObject([busy, busy]);
  });
  expect([await transactions(alone), (await read(large)).issue.proposal]).toEqual([[], null]);
  expect((await attribute(alone)).issue.status).toBe("attributed");
});

describe("one person alone", () => {
  test("attributes up to the default limit, and not one minor unit more", async () => {
    const most = Number(aloneUnlessSet("EUR"));
    const allowed = await openScene(most);
    expect((await attribute(allowed)).issue.status).toBe("attributed");
    const above = await openScene(most + 1);
    expect(await read(above), "what the operator sees before").toMatchObject({ aloneUpToMinor: String(most) });
    const refusal = await refusalOf(attribute(above));
    expect(refusal).toMatchObject({ code: "conflict", reason: "second_person_needed" });
    expect(refusal.detail).toContain("100.00 EUR");
    expect(await transactions(above)).toEqual([]);
  });

  test("attributes up to the owner's limit, which is in the audit log", async () => {
    const scene = await openScene();
    const { limit } = await setLimit(scene, String(LARGE - 1));
    expect(limit).toMatchObject({ aloneUpToMinor: String(LARGE - 1), set: { byId: scene.place.owner.userId } });
    expect(await read(scene)).toMatchObject({ aloneUpToMinor: String(LARGE - 1) });
    expect(await reasonOf(attribute(scene))).toBe("second_person_needed");
    await setLimit(scene, String(LARGE));
    // A repetition adds no second entry to the audit log.
    await setLimit(scene, String(LARGE));
    const { limits } = await world.ask(limitMessages.listAttributionLimits, { caller: scene.place.owner });
    expect(limits).toMatchObject([{ currency: "EUR", aloneUpToMinor: String(LARGE) }]);
    const log = { caller: scene.place.owner, sinceId: 0, limit: 100 };
    const { events } = await world.ask(listProviderEvents, log);
    expect(events.filter(({ action }) => action === "attribution_limit_set").map(({ data }) => data)).toEqual([
      { currency: "EUR", reason: "As agreed", from: null, to: String(LARGE - 1) },
      { currency: "EUR", reason: "As agreed", from: String(LARGE - 1), to: String(LARGE) },
    ]);
    expect((await attribute(scene)).issue.status).toBe("attributed");
  });

  test("an owner's limit of 0 allows nothing, and its removal restores the default", async () => {
    const scene = await openScene(100);
    await setLimit(scene, "0");
    expect(await reasonOf(attribute(scene))).toBe("second_person_needed");
    expect((await setLimit(scene, null)).limit).toMatchObject({ aloneUpToMinor: "10000", set: null });
    expect((await attribute(scene)).issue.status).toBe("attributed");
  });

  test.each([
    ["EUR", 10_000n],
    ["KWD", 100_000n],
    ["JPY", 10_000n],
  ])("the default limit in %s: %s", (currency, minor) => expect(aloneUnlessSet(currency)).toBe(minor));

  test("a limit that an operator sets, or for an unknown currency: refused", async () => {
    const scene = await openScene();
    const request = { currency: "EUR", aloneUpToMinor: "1", reason: "x" };
    const asOperator = { ...request, caller: scene.place.operator };
    expect(await reasonOf(world.ask(limitMessages.setAttributionLimit, asOperator))).toBe("permission_denied");
    const wrong = { ...request, caller: scene.place.owner, currency: "QQQ" };
    expect(await reasonOf(world.ask(limitMessages.setAttributionLimit, wrong))).toBe("invalid_request");
    const list = world.ask(limitMessages.listAttributionLimits, { caller: scene.place.operator });
    expect(await reasonOf(list)).toBe("permission_denied");
  });
});

describe("a proposal", () => {
  test("waits in the issue, and another person's confirmation settles it once, with both people in the audit log", async () => {
    const scene = await openScene();
    const { operator } = scene.place;
    const issue = await propose(scene);
    const proposal = { orderId: scene.order.orderId, reason: REASON, proposedBy: operator.userId };
    expect(issue).toMatchObject({ status: "open", proposal: { ...proposal, proposedByName: operator.name } });
    expect((await read(scene)).issue).toEqual(issue);
    expect(await propose(scene)).toEqual(issue);
    expect(await transactions(scene)).toEqual([]);
    const proposalId = issue.proposal?.proposalId ?? 0;
    const confirmed = await confirm(scene, proposalId);
    expect(confirmed).toMatchObject({ status: "attributed", resolvedBy: 700_001, reason: REASON, proposal: null });
    expect(await confirm(scene, proposalId)).toEqual(confirmed);
    expect(await propose(scene)).toEqual(confirmed);
    expect(await transactions(scene)).toEqual([{ attested_by: 700_001 }]);
    expect(await actions(scene)).toEqual(["issue_attribution_proposed", "issue_attributed"]);
    expect((await read(scene)).steps.at(-1)).toMatchObject({
      actor: { id: 700_001, name: "Sara" },
      data: { proposal_id: proposalId, proposed_by: { id: operator.userId, name: operator.name } },
    });
    expect(await reasonOf(confirm(scene, proposalId, scene.third))).toBe("issue_attributed");
  });

  test("is neither confirmed nor rejected by the person who made it", async () => {
    const scene = await openScene();
    const id = await proposed(scene);
    expect(await reasonOf(confirm(scene, id, scene.place.operator))).toBe("own_proposal");
    expect(await reasonOf(reject(scene, id, scene.place.operator))).toBe("own_proposal");
    expect(await reasonOf(withdraw(scene, id, scene.second))).toBe("proposed_by_another");
    expect(await transactions(scene)).toEqual([]);
  });

  test("is rejected: nothing is settled, and another proposal is possible", async () => {
    const scene = await openScene();
    const id = await proposed(scene);
    const rejected = await reject(scene, id);
    expect(rejected).toMatchObject({ status: "open", proposal: null });
    expect(await reject(scene, id)).toMatchObject({ status: "open", proposal: null });
    expect(await reasonOf(confirm(scene, id, scene.third))).toBe("proposal_ended");
    expect(await reasonOf(reject(scene, id, scene.third))).toBe("proposal_ended");
    expect(await actions(scene)).toEqual(["issue_attribution_proposed", "issue_attribution_rejected"]);
    expect((await confirm(scene, await proposed(scene))).status).toBe("attributed");
  });

  test("is withdrawn by the person who made it", async () => {
    const scene = await openScene();
    const id = await proposed(scene);
    for (const _ of [1, 2]) expect((await withdraw(scene, id)).proposal).toBeNull();
    expect(await reasonOf(confirm(scene, id))).toBe("proposal_ended");
    expect(await actions(scene)).toEqual(["issue_attribution_proposed", "issue_attribution_withdrawn"]);
  });

  test("waits: a second proposal is refused with the name of the first proposer", async () => {
    const scene = await openScene();
    await propose(scene);
    const refusal = await refusalOf(propose(scene, { caller: scene.second }));
    expect(refusal).toMatchObject({ reason: "proposal_waiting" });
    expect(refusal.detail).toContain("Rosa");
    expect(await reasonOf(propose(scene, { reason: "Another reason" }))).toBe("proposal_waiting");
  });

  test("requires a matching order, a reason and the permission", async () => {
    const scene = await openScene();
    const other = { ...scene, order: await world.openIntent(scene.place, LARGE + 1) };
    expect(await reasonOf(propose(other))).toBe("amount_differs");
    expect(await reasonOf(propose(scene, { reason: " " }))).toBe("invalid_request");
    for (const caller of [scene.place.owner, scene.place.cashier])
      expect(await reasonOf(propose(scene, { caller }))).toBe("permission_denied");
    const stranger = (await world.openPlace()).operator;
    expect(await reasonOf(propose(scene, { caller: stranger }))).toBe("not_found");
    const id = await proposed(scene);
    for (const caller of [scene.place.owner, scene.place.cashier]) {
      expect(await reasonOf(confirm(scene, id, caller))).toBe("permission_denied");
      expect(await reasonOf(reject(scene, id, caller))).toBe("permission_denied");
      expect(await reasonOf(withdraw(scene, id, caller))).toBe("permission_denied");
    }
    expect(await reasonOf(confirm(scene, id, stranger))).toBe("not_found");
    expect(await reasonOf(confirm(scene, id + 1))).toBe("not_found");
  });
});

describe("a proposal ends", () => {
  const ENDINGS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
    "when the provider asserts another amount": (scene) => assert(scene, LARGE + 100),
    "when the order has another amount": ({ place, order }) =>
      world.ask(changeOrder, {
        caller: place.cashier,
        orderId: order.orderId,
        lines: [{ name: "Soup", quantity: 1, unitAmountMinor: "1300" }],
      }),
    "when the order is voided": ({ place, order }) =>
      world.ask(voidOrder, { caller: place.cashier, orderId: order.orderId }),
    "when the order is paid otherwise": ({ place, order }) => payInCash(place, order),
    "when the owner suspends the person who has proposed it": ({ place }) => suspend(place.operator),
    "when the issue is closed": ({ place, issueId }) =>
      world.ask(issues.closeIssue, { caller: place.operator, issueId, reason: "Paid back" }),
  };

  // They run in parallel, because each waits for the next run of the job that records ends.
  test.concurrent.each(Object.entries(ENDINGS))("%s: at once, and soon in the audit log", async (_name, end) => {
    const scene = await openScene();
    const id = await proposed(scene);
    await end(scene);
    expect((await read(scene)).issue.proposal).toBeNull();
    expect(["proposal_ended", "issue_closed"]).toContain(await reasonOf(confirm(scene, id)));
    await waitFor("the end of the proposal", async () => (await actions(scene)).includes("issue_attribution_ended"));
    const paid = await transactions(scene);
    expect(paid.filter(({ attested_by: by }) => by === 700_001)).toEqual([]);
  });
});

describe("simultaneous steps of a proposal", () => {
  test("confirmations by two people: one is the outcome, and one transaction exists", async () => {
    const scene = await openScene();
    const id = await proposed(scene);
    const asked = [scene.second, scene.third, scene.second].map((caller) => confirm(scene, id, caller));
    const outcomes = await Promise.allSettled(asked);
    const { issue } = await read(scene);
    expect(await transactions(scene)).toEqual([{ attested_by: issue.resolvedBy }]);
    for (const outcome of outcomes)
      if (outcome.status === "fulfilled") expect(outcome.value.resolvedBy).toBe(issue.resolvedBy);
    expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
  });

  test("a confirmation, a rejection and a withdrawal: one outcome", async () => {
    for (let round = 0; round < 5; round += 1) {
      const scene = await openScene();
      const id = await proposed(scene);
      await Promise.allSettled([confirm(scene, id), reject(scene, id, scene.third), withdraw(scene, id)]);
      const { issue } = await read(scene);
      const settled = await transactions(scene);
      expect(settled).toHaveLength(issue.status === "attributed" ? 1 : 0);
      const last = (await actions(scene)).slice(1);
      expect(last).toHaveLength(1);
      expect(last[0] === "issue_attributed").toBe(issue.status === "attributed");
    }
  });

  test("two proposals: one waits, the other is refused", async () => {
    const scene = await openScene();
    const outcomes = await Promise.allSettled([propose(scene), propose(scene, { caller: scene.second })]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await actions(scene)).toEqual(["issue_attribution_proposed"]);
  });

  test("a process dies between confirmation and settlement: the next request settles in the confirmer's name", async () => {
    const scene = await openScene();
    const id = await proposed(scene);
    const { order, issueId, place } = scene;
    const attribution = {
      intentId: order.intentId,
      attestationId: `issue:${issueId}:${order.intentId}`,
      stationId: place.stationId,
      orderId: order.orderId,
      amountMinor: order.amountMinor,
      currency: order.currency,
      reference: scene.reference,
      reason: REASON,
      by: { userId: 700_001, name: "Sara", role: "reconciliation_operator" },
      proposal: { proposalId: id, by: place.operator.userId, byName: "Rosa" },
    };
    await world.database`
      update issues set attribution = ${world.database.json(attribution)}, attributed_since = now() where issue_id = ${issueId}`;
    expect(await reasonOf(reject(scene, id, scene.third))).toBe("issue_attributed");
    expect(await transactions(scene)).toEqual([{ attested_by: 700_001 }]);
    expect((await confirm(scene, id)).status).toBe("attributed");
  });
});

describe("issue events on the bus", () => {
  const types = async ({ place }: Scene) =>
    (
      await world.database<{ type: string }[]>`
        select payload #>> '{event,type}' as type from outbox
        where kind = 'issue_event' and key = ${`organization.${place.organizationId}`} order by outbox_id`
    ).map(({ type }) => type);

  test("each step is an event: opened by the callback, changed, closed; a repetition causes no event", async () => {
    const scene = await openScene();
    await assert(scene, LARGE);
    expect(await types(scene)).toEqual(["issues_opened"]);
    const id = await proposed(scene);
    await propose(scene);
    await reject(scene, id);
    await reject(scene, id);
    const again = await proposed(scene);
    await confirm(scene, again);
    await confirm(scene, again);
    const changes = ["issues_changed", "issues_changed", "issues_changed"];
    expect(await types(scene)).toEqual(["issues_opened", ...changes, "issues_closed"]);
  });

  test("further evidence of a callback: the issue has changed", async () => {
    const scene = await openScene();
    for (const _ of [1, 2]) await assert(scene, LARGE + 100);
    expect(await types(scene)).toEqual(["issues_opened", "issues_changed"]);
  });
});

/** Stores the operator as a suspended user; before, the table has no row of this user. */
const suspend = ({ organizationId, userId }: Caller) => world.database`
  insert into users (user_id, organization_id, email, name, role, password_hash, status) overriding system value
  values (${userId}, ${organizationId}, ${`rosa${userId}@proposals.example`}, 'Rosa', 'reconciliation_operator', 'x', 'suspended')`;

/** Settles the order through the payment seam, as cash. */
async function payInCash(place: Place, order: Intent): Promise<void> {
  await world.database`
    select settle_intent(${order.intentId}, 'cash', ${place.stationId}, ${order.orderId}, 'cash', ${order.amountMinor},
      ${order.currency}, '', ${place.cashier.userId})`;
}

test("a stalled process carries out a proposal after its withdrawal: no proposal waits afterwards", async () => {
  const scene = await openScene();
  const { place, issueId, order } = scene;
  const request = { caller: place.operator, issueId, orderId: order.orderId, reason: REASON };
  const again = await carryOut(world.bus.nc, proposalMessages.proposeAttribution, request);
  await withdraw(scene, (await read(scene)).issue.proposal?.proposalId ?? 0);
  await again();
  expect((await read(scene)).issue.proposal).toBeNull();
  expect(await actions(scene)).toEqual(["issue_attribution_proposed", "issue_attribution_withdrawn"]);
});
