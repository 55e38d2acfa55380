/** The customer display: its states, its fields, and the QR code. */
import { clientLimits } from "../../limits.ts";
import { type Check, perRun } from "../check.ts";
import { asObject, expectField, expectNot, expectSame, expectStatus, expectThat, objectOf } from "../expect.ts";
import { AMOUNT, type Collection, type World } from "../world.ts";

const FIELDS = {
  state: "string",
  order_display_number: "integer",
  amount: "amount",
  currency: "string",
  qr_payload: "string",
  intent_status: "string",
  server_time: "date-time",
} as const;
const ROWS: Readonly<Record<keyof typeof FIELDS, string>> = {
  state: "state | string | one of `idle`, `total`, `qr`, `paid`; rendered verbatim by the device",
  order_display_number: "order_display_number | integer | required",
  amount: "amount | string, decimal | required",
  currency: "currency | string | required",
  qr_payload:
    "qr_payload | string | required field; carries a value only in state `qr` and only for devices whose capabilities include `qr_dynamic_present`",
  intent_status: "intent_status | string | required",
  server_time: "server_time | string, date-time | required",
};

/** What the display showed in each state, for the checks of its fields. */
const shownIn = perRun(() => ({
  bodies: [] as Record<string, unknown>[],
  qr: {} as Collection,
  paidOrder: {},
  /** The ETag of the newest answer. */
  etag: "",
  etagOf: {} as Record<string, string>,
}));
/** An amount for which the sandbox provider sends its callback three times. */
const TWICE_CONFIRMED = "25.04";
const TWICE_CONFIRMED_LINES = [{ name: "Soup of the day", quantity: 1, unit_amount: TWICE_CONFIRMED }];
/** An amount for which the sandbox provider waits for the guest, who never pays. */
const NEVER_PAID = [{ name: "Soup of the day", quantity: 1, unit_amount: "25.03" }];

/** How old a shown state may be when a later check reads it. */
const SHOWN_MS = 120_000;

async function read(world: World): Promise<Record<string, unknown>> {
  const answer = expectStatus(await world.display.send("GET", "display/"), 200);
  shownIn(world).etag = answer.headers.get("etag") ?? "";
  return objectOf(answer);
}

/** Waits for a state with few requests: the display's throttle allows one a second. */
async function shows(world: World, state: string, waitMs = 3_000): Promise<Record<string, unknown>> {
  const unpaced = () => read(world);
  const body = await world.until(`the display shows \`${state}\``, waitMs, unpaced, (now) => now["state"] === state);
  shownIn(world).bodies.push(body);
  shownIn(world).etagOf[state] = shownIn(world).etag;
  return body;
}

const QR = "qr_dynamic_present";

async function readDisplay({ owner, sandbox }: World): Promise<{ readonly capabilities: readonly string[] }> {
  const answer = expectStatus(await owner.send("GET", `devices/${sandbox.displayId}/`), 200);
  return objectOf(answer) as { readonly capabilities: readonly string[] };
}

async function declare({ owner, sandbox }: World, capabilities: readonly string[]): Promise<void> {
  expectStatus(await owner.change("PATCH", `devices/${sandbox.displayId}/`, { json: { capabilities } }), 200);
}

const fieldChecks: readonly Check[] = (Object.keys(FIELDS) as (keyof typeof FIELDS)[]).map((field) => ({
  id: `display.${field}`,
  capability: "display_total",
  after: ["display.total"],
  quotes: [ROWS[field]],
  run: async (world) => {
    for (const body of shownIn(world).bodies) {
      expectField(body, field, field === "amount" && body["state"] === "idle" ? "string" : FIELDS[field]);
      if (field === "state")
        expectThat(
          "`state`",
          ["idle", "total", "qr", "paid"].includes(String(body[field])),
          "one of the four states",
          body[field],
        );
      if (field === "server_time") {
        const skewMs = Math.abs(Date.parse(String(body[field])) - Date.now());
        expectThat("`server_time`", skewMs < SHOWN_MS, "a time of this run", body[field]);
      }
      if (field === "qr_payload" && body["state"] !== "qr") expectSame("`qr_payload` outside of `qr`", body[field], "");
    }
  },
}));

export const displayChecks: readonly Check[] = [
  {
    id: "display.idle",
    capability: "display_total",
    after: ["enroll.claims_code"],
    quotes: [
      "Response JSON: Display state for the device's station.",
      "payments_device_display | GET | /api/payments/v1/devices/display/ | device credential",
      "States: `idle`, `total`, `qr`, `paid`.",
    ],
    run: async (world) => void (await shows(world, "idle")),
  },
  {
    id: "display.total",
    capability: "display_total",
    after: ["display.idle"],
    quotes: ["States: `idle`, `total`, `qr`, `paid`."],
    async run(world) {
      await world.beat("display");
      const cash = await world.collect("cash");
      const body = await shows(world, "total");
      expectSame("`amount` on the display", body["amount"], AMOUNT);
      expectSame("`currency` on the display", body["currency"], world.currency);
      expectSame("`order_display_number` on the display", body["order_display_number"], cash.orderDisplayNumber);
      const { status } = await world.intent(cash.intentId);
      expectSame("`intent_status` on the display", body["intent_status"], status);
      const headers = { "if-none-match": shownIn(world).etagOf["idle"] ?? "" };
      expectStatus(await world.display.send("GET", "display/", { headers }), 200);
      await world.discard(cash);
    },
  },
  {
    id: "display.qr",
    capability: "qr_dynamic_present",
    after: ["display.total"],
    quotes: [
      "`qr_payload` renders only on devices declaring `qr_dynamic_present`.",
      "qr_payload | string | required field; carries a value only in state `qr` and only for devices whose capabilities include `qr_dynamic_present`",
    ],
    async run(world) {
      // The sandbox's display may not show QR codes; the end of the run restores its capabilities.
      const { capabilities } = await readDisplay(world);
      if (!capabilities.includes(QR)) await declare(world, [...capabilities, QR]);
      const offered = () => world.routeOffered("dynamic_qr");
      await world.until("`dynamic_qr` is offered", clientLimits.conformanceProviderMs, offered, (is) => is);
      shownIn(world).qr = await world.collect("dynamic_qr", { lines: TWICE_CONFIRMED_LINES });
      const body = await shows(world, "qr", clientLimits.conformanceProviderMs);
      expectNot("`qr_payload` in the state `qr`", body["qr_payload"], "");
      expectSame("`amount` on the display", body["amount"], TWICE_CONFIRMED);
      const { orderDisplayNumber } = shownIn(world).qr;
      expectSame("`order_display_number` on the display", body["order_display_number"], orderDisplayNumber);
      expectSame("`currency` on the display", body["currency"], world.currency);
      expectSame("`intent_status` on the display", body["intent_status"], "presented");
    },
  },
  {
    id: "qr.confirmed_by_provider",
    capability: "qr_dynamic_present",
    after: ["display.qr"],
    quotes: ["A dynamic-QR payment is confirmed by a provider callback; a duplicate callback replays identically."],
    async run(world) {
      const intent = () => world.intent(shownIn(world).qr.intentId);
      const waitMs = clientLimits.conformanceProviderMs;
      await world.until("the provider's callback settles", waitMs, intent, (now) => now["status"] === "succeeded");
      const { qr } = shownIn(world);
      const order = await world.order(qr.orderId);
      shownIn(world).paidOrder = order;
      expectSame("`status` of the order", order["status"], "paid");
      const transaction = asObject("`transaction`", order["transaction"]);
      expectSame("`intent_id` of the transaction", transaction["intent_id"], qr.intentId);
      expectSame("`route` of the transaction", transaction["route"], "dynamic_qr");
      expectSame("`amount` of the transaction", transaction["amount"], TWICE_CONFIRMED);
      expectSame("`currency` of the transaction", transaction["currency"], world.currency);
    },
  },
  {
    id: "display.paid",
    capability: "display_total",
    after: ["qr.confirmed_by_provider"],
    quotes: ["States: `idle`, `total`, `qr`, `paid`."],
    async run(world) {
      const body = await shows(world, "paid");
      const headers = { "if-none-match": shownIn(world).etagOf["qr"] ?? "" };
      expectStatus(await world.display.send("GET", "display/", { headers }), 200);
      expectSame("`amount` on the display", body["amount"], TWICE_CONFIRMED);
      expectSame("`intent_status` on the display", body["intent_status"], "succeeded");
      expectSame("`qr_payload` in the state `paid`", body["qr_payload"], "");
      expectSame("`currency` on the display", body["currency"], world.currency);
      const { orderDisplayNumber } = shownIn(world).qr;
      expectSame("`order_display_number` on the display", body["order_display_number"], orderDisplayNumber);
    },
  },
  ...fieldChecks,
  {
    id: "display.qr_needs_capability",
    capability: "qr_dynamic_present",
    after: ["display.qr"],
    quotes: [
      "`qr_payload` renders only on devices declaring `qr_dynamic_present`.",
      "The owner declares the device capabilities and, for a smart POS companion, the launch reference of the co-resident payment application (exposed as `handoff_target`).",
    ],
    async run(world) {
      const { capabilities } = await readDisplay(world);
      await declare(
        world,
        capabilities.filter((name) => name !== QR),
      );
      const collection = await world.collect("dynamic_qr", { lines: NEVER_PAID });
      const waitMs = clientLimits.conformanceProviderMs;
      const intent = () => world.intent(collection.intentId);
      try {
        await world.until("the QR code is there", waitMs, intent, (now) => now["status"] === "presented");
        const { qr_payload: payload } = await shows(world, "total");
        expectSame("`qr_payload` on a display without the capability", payload, "");
        const me = objectOf(expectStatus(await world.display.send("GET", "me/"), 200));
        expectSame("`capabilities` after the owner's change", (me["capabilities"] as string[]).includes(QR), false);
      } finally {
        await declare(world, capabilities);
        await world.discard(collection);
      }
    },
  },
];

/** These run after the provider has sent all its callbacks. */
export const duplicateCallbackChecks: readonly Check[] = [
  {
    id: "qr.duplicate_callback",
    capability: "qr_dynamic_present",
    after: ["qr.confirmed_by_provider"],
    quotes: ["A dynamic-QR payment is confirmed by a provider callback; a duplicate callback replays identically."],
    async run(world) {
      const { qr, paidOrder } = shownIn(world);
      expectSame("the order after a duplicate callback", await world.order(qr.orderId), paidOrder);
      expectSame("`status` of the intent", (await world.intent(qr.intentId))["status"], "succeeded");
    },
  },
];

/** These run while a collection lapses, because nothing changes then. */
export const unchangedDisplayChecks: readonly Check[] = [
  {
    id: "display.not_modified",
    capability: "display_total",
    after: ["display.total"],
    quotes: [
      "Request header: `If-None-Match` (optional); the response supports ETag; 304 when unchanged.",
      "A polling read with an unchanged state answers 304 with no body; this is not an error.",
    ],
    async run(world) {
      let newest = "";
      const isStable = async () => {
        const { etag = "" } = Object.fromEntries(
          expectStatus(await world.display.send("GET", "display/"), 200).headers,
        );
        const before = newest;
        newest = etag;
        return etag !== "" && etag === before;
      };
      await world.until(
        "the display has one `ETag` while nothing changes",
        clientLimits.conformanceProviderMs,
        isStable,
        (is) => is,
      );
      const first = expectStatus(await world.display.send("GET", "display/"), 200);
      const etag = first.headers.get("etag") ?? "";
      expectThat("header `ETag`", etag !== "", "it is there", first.headers.get("etag"));
      const unchanged = await world.display.send("GET", "display/", { headers: { "if-none-match": etag } });
      expectSame("body of 304", expectStatus(unchanged, 304).text, "");
      expectStatus(await world.display.send("GET", "display/", { headers: { "if-none-match": '"another"' } }), 200);
    },
  },
];
