/** The four demos: a collection on the smart POS, one by QR, two payments that do not fit, and a robot's serving task. */
import type { Sandbox } from "../command.ts";

/**
 * A demo is a list of steps. Each step is one request, and may keep values of its answer for later steps.
 * `clients/demo.ts` runs this list, or prints it as lines for a shell.
 *
 * In a path or a body `$NAME` stands for a kept value. In a body `"$NAME"` becomes a number and `"${NAME}"` a text.
 */
type Actor = "OWNER" | "CASHIER" | "OPERATOR" | "ROBOTS" | "COMPANION" | "SCREEN";

export interface Step {
  /** What the step shows, in one or two sentences. */
  readonly note?: string;
  readonly method: "GET" | "POST";
  /** A path of the service, or `$NAME` where an earlier answer had the whole address. */
  readonly path: string;
  /** The kept value that the request carries as its bearer token: the actor's credential or session token. */
  readonly as?: Actor;
  readonly body?: object;
  /** The body as a form, instead of `body`. */
  readonly form?: string;
  /** The values that the step keeps: the name of each, and the field of the answer that has it. */
  readonly keep?: Readonly<Record<string, string>>;
  /** The demo sends the request once a second until the answer contains this text, at most `UNTIL_TRIES` times. */
  readonly until?: string;
  /** The error code with which the service has to refuse this step. */
  readonly refusedWith?: string;
  /** Without this kept value the demo skips the step. With it the service may still refuse the step. */
  readonly onlyWith?: string;
}

export interface Demo {
  readonly title: string;
  /** The values that are kept before the first step. */
  readonly initial: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

export const UNTIL_TRIES = 15;

/** The first field of this name in an answer. The shell function `field` of `clients/demo.ts` finds the same one. */
export function fieldOf(answer: string, name: string): string {
  return new RegExp(`"${name}":"?([^",}]*)`).exec(answer)?.[1] ?? "";
}

export const DEMOS = ["collection", "qr", "issue", "robot"] as const;

export function demoOf(name: (typeof DEMOS)[number], sandbox: Sandbox, displayCredential: string): Demo {
  switch (name) {
    case "collection":
      return { title: "A collection on the smart POS", initial: {}, steps: collectionSteps(sandbox) };
    case "qr": {
      const initial = { SCREEN: displayCredential };
      return { title: "A collection by QR, with the guest's page", initial, steps: qrSteps(sandbox) };
    }
    case "issue": {
      const title = "Two payments that do not fit, and what an operator does";
      return { title, initial: {}, steps: issueSteps(sandbox) };
    }
    case "robot": {
      const initial = { ROBOTS: sandbox.robotics.credential };
      return { title: "A serving task for a fleet of robots", initial, steps: robotSteps(sandbox) };
    }
  }
}

const devices = "/api/payments/v1/devices";
const backoffice = "/api/backoffice/v1";
const issues = "/api/reconciliation/v1/issues/";

const get = (as: Actor, path: string, more?: Partial<Step>): Step => ({ method: "GET", path, as, ...more });
const post = (as: Actor, path: string, more?: Partial<Step>): Step => ({ method: "POST", path, as, ...more });

const display = (more?: Partial<Step>): Step => get("SCREEN", `${devices}/display/`, more);
const timeline = (more?: Partial<Step>): Step => get("OWNER", `${backoffice}/intents/$INTENT/timeline/`, more);

/** Enrolls new devices, so that the reader can still use the enrollment codes of the station's devices. */
function collectionSteps(sandbox: Sandbox): Step[] {
  const cashier = cashierAt(sandbox.station);
  const { stationId: station_id } = sandbox.station;
  return [
    signIn("OWNER", sandbox),
    signIn("CASHIER", sandbox),
    ...enroll("COMPANION", { station_id, name: "Demo companion", kind: "smart_pos_companion" }),
    ...enroll("SCREEN", { station_id, name: "Demo display", kind: "customer_display" }),
    ...cashier.openOrder({ name: "Soup of the day", quantity: 2, unit_amount: "6.25" }),
    display({ note: "The display shows the order's total." }),
    post("COMPANION", `${devices}/heartbeat/`, {
      note: "The companion is live for 25 seconds after a heartbeat, so the route smart_pos is offered.",
    }),
    get("CASHIER", `${cashier.path}/routes/`, { until: '"smart_pos","offered":true' }),
    cashier.createIntent("smart_pos", {
      note: "The cashier chooses this route and this companion, and the collection begins.",
      body: { order_id: "$ORDER", route: "smart_pos", device_id: "$COMPANIONID" },
    }),
    get("COMPANION", `${devices}/assignment/`, {
      note: "The companion fetches the assignment and reports the result of its payment application.",
    }),
    post("COMPANION", `${devices}/assignment/report/`, {
      body: {
        intent_id: "$INTENT",
        outcome: "reported_success",
        provider_reference: "SLIP-$INTENT",
        client_idempotency_key: "first-try",
      },
    }),
    cashier.attest("$INTENT", { note: "A reported payment is not a paid order: the cashier attests the payment." }),
    display({ note: "The display shows paid, and idle eight seconds later." }),
    timeline({ note: "The owner reads the payment's timeline." }),
    revoke("COMPANION", { note: "The owner revokes the demo's devices." }),
    revoke("SCREEN"),
  ];
}

/** The guest decides on the page behind the QR. */
function qrSteps(sandbox: Sandbox): Step[] {
  const cashier = cashierAt(sandbox.demoStation);
  return [
    signIn("CASHIER", sandbox),
    ...cashier.openOrder({ name: "Tea and a biscuit", quantity: 1, unit_amount: "12.03" }),
    cashier.createIntent("dynamic_qr", { note: "An amount that ends in 03 waits for the guest's page." }),
    display({
      note: "The provider creates the payment. The display shows its QR code: the address of the guest's page.",
      until: '"state":"qr"',
      keep: { QR: "qr_payload" },
    }),
    { note: "The guest opens the page and approves.", method: "GET", path: "$QR" },
    { method: "POST", path: "$QR", form: "decision=approve" },
    cashier.readIntent({
      note: "The provider's callback settles the payment. No cashier attests.",
      until: '"status":"succeeded"',
    }),
    display({ note: "The display shows paid for eight seconds." }),
  ];
}

function issueSteps(sandbox: Sandbox): Step[] {
  const cashier = cashierAt(sandbox.demoStation);
  const newestIssue = (note: string): Step =>
    get("OPERATOR", `${issues}?status=open&limit=1`, { note, keep: { ISSUE: "issue_id" } });
  const differing = (note: string, amount: string): Step[] => [
    ...cashier.openOrder({ name: "Lunch", quantity: 1, unit_amount: amount }, note),
    cashier.createIntent("dynamic_qr"),
    cashier.readIntent({
      note: "The cashier sees at once that the provider reports a different payment, and ends the collection.",
      until: '"money_may_have_moved":"money_differs"',
    }),
    post("CASHIER", `${cashier.path}/intents/$INTENT/cancel/`),
  ];
  return [
    signIn("CASHIER", sandbox),
    signIn("OWNER", sandbox),
    signIn("OPERATOR", sandbox),
    ...differing("An amount that ends in 09: the provider reports a payment under an unknown reference.", "12.09"),
    newestIssue("The operator finds the issue and attributes the payment to the order. This pays the order."),
    post("OPERATOR", `${issues}$ISSUE/attribute/`, {
      body: { order_id: "$ORDER", reason: "The guest showed the receipt." },
    }),
    get("CASHIER", "/api/cashier/v1/orders/$ORDER/"),
    timeline(),
    ...differing("An amount that ends in 07: the provider took one whole unit too much.", "12.07"),
    newestIssue("The guest gets the money back, and the operator closes the issue."),
    post("OPERATOR", `${issues}$ISSUE/close/`, { body: { reason: "Paid back at the counter." } }),
    cashier.createIntent("cash", {
      note: "The order is still open. To collect it again, the cashier confirms the reason that the refusal names.",
      refusedWith: "money_may_have_moved",
      keep: { NUMBER: "reason_number" },
    }),
    post("CASHIER", `${cashier.path}/intents/`, {
      body: {
        order_id: "$ORDER",
        route: "cash",
        confirms_money_may_have_moved: true,
        confirmed_reason_number: "$NUMBER",
      },
      keep: { CASH: "intent_id" },
    }),
    cashier.attest("$CASH"),
  ];
}

/** The owner offers a task, and the fleet carries it out. */
function robotSteps(sandbox: Sandbox): Step[] {
  const tasks = "/api/robotics/v1/serving-tasks/";
  return [
    signIn("OWNER", sandbox),
    post("OWNER", `${backoffice}/serving-tasks/`, {
      note: "The owner offers a task; the fleet has two minutes to accept it.",
      body: {
        consumer_id: sandbox.robotics.consumerId,
        leg: "kitchen_to_table",
        manifest: [{ name: "Soup of the day", quantity: 2 }],
        destination: { name: "Table 12" },
      },
      keep: { TASK: "task_id" },
    }),
    get("ROBOTS", tasks, { note: "The fleet lists it, accepts it and completes it." }),
    post("ROBOTS", `${tasks}$TASK/accept/`),
    post("ROBOTS", `${tasks}$TASK/complete/`),
  ];
}

function signIn(actor: "OWNER" | "CASHIER" | "OPERATOR", sandbox: Sandbox): Step {
  const [api, body] = {
    OWNER: ["backoffice", sandbox.owner] as const,
    CASHIER: ["cashier", sandbox.cashier] as const,
    OPERATOR: ["reconciliation", sandbox.operator] as const,
  }[actor];
  const note = `The ${actor.toLowerCase()} signs in.`;
  return { note, method: "POST", path: `/api/${api}/v1/session/`, body, keep: { [actor]: "token" } };
}

/** Registers and enrolls a new device. Keeps its id and its credential. */
function enroll(
  actor: "COMPANION" | "SCREEN",
  body: { readonly kind: string; readonly [field: string]: unknown },
): Step[] {
  const id = `${actor}ID`;
  return [
    post("OWNER", `${backoffice}/devices/`, {
      note: `The owner registers a ${body.kind} and issues a one-time code; the device claims it.`,
      body,
      keep: { [id]: "device_id" },
    }),
    post("OWNER", `${backoffice}/devices/$${id}/enrollment-codes/`, { keep: { CODE: "code" } }),
    { method: "POST", path: `${devices}/enroll/`, body: { code: "${CODE}" }, keep: { [actor]: "credential" } },
  ];
}

const revoke = (actor: "COMPANION" | "SCREEN", more?: Partial<Step>): Step =>
  post("OWNER", `${backoffice}/devices/$${actor}ID/revoke/`, more);

/** The steps of a cashier at a station. */
function cashierAt({ stationId }: Sandbox["station"]) {
  const path = `/api/cashier/v1/stations/${stationId}`;
  return {
    path,
    /** Takes the lease, and cancels a collection that an earlier demo left, because it would block the next one. */
    openOrder: (line: object, note = "The cashier takes the station and opens an order."): Step[] => [
      post("CASHIER", `${path}/lease/`, { note }),
      get("CASHIER", `${path}/intents/`, { keep: { EARLIER: "intent_id" } }),
      post("CASHIER", `${path}/intents/$EARLIER/cancel/`, {
        note: "Ends a collection that an earlier run left; 409 when it has ended already.",
        onlyWith: "EARLIER",
      }),
      post("CASHIER", `${path}/orders/`, { body: { lines: [line] }, keep: { ORDER: "order_id" } }),
    ],
    createIntent: (route: "smart_pos" | "dynamic_qr" | "cash", more?: Partial<Step>): Step =>
      post("CASHIER", `${path}/intents/`, {
        body: { order_id: "$ORDER", route },
        keep: { INTENT: "intent_id" },
        ...more,
      }),
    readIntent: (more: Partial<Step>): Step => get("CASHIER", `${path}/intents/$INTENT/`, more),
    attest: (intent: string, more?: Partial<Step>): Step => post("CASHIER", `${path}/intents/${intent}/attest/`, more),
  };
}
