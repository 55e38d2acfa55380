/** The four demos: a collection on the smart POS, one by QR, two payments that do not fit, and a robot's serving task. */
import type { Sandbox } from "../command.ts";

/**
 * A demo is a list of steps: one request each, with what is kept of its answer for later steps. The same list is run
 * and printed as lines for a shell (`clients/demo.ts`), so that both do the same.
 *
 * In paths, addresses and bodies `$NAME` is a kept value; in a body, `"$NAME"` alone becomes a number and `"${NAME}"` a text.
 */
type Actor = "OWNER" | "CASHIER" | "OPERATOR" | "ROBOTS" | "COMPANION" | "SCREEN";

export interface Step {
  /** What the step shows, in one or two sentences. */
  readonly note?: string;
  readonly method: "GET" | "POST";
  /** Below the service's address, or `$NAME` of an address that an answer has given. */
  readonly path: string;
  /** Whose credential or session token it carries: the kept value of this name. */
  readonly as?: Actor;
  readonly body?: object;
  /** A form instead of JSON. */
  readonly form?: string;
  /** The names of kept values, each with the field of the answer that it is. */
  readonly keep?: Readonly<Record<string, string>>;
  /** Repeated once a second, `UNTIL_TRIES` times at most, until the answer holds this text. */
  readonly until?: string;
  /** The error code that this step is answered with on purpose. */
  readonly refusedWith?: string;
  /** Left out while this kept value is missing, and no error when it is refused. */
  readonly onlyWith?: string;
}

export interface Demo {
  readonly title: string;
  /** What is known before the first step. */
  readonly given: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

export const UNTIL_TRIES = 15;

/** A field of an answer, as the shell's `field` finds it: the first one of this name. */
export function fieldOf(answer: string, name: string): string {
  return new RegExp(`"${name}":"?([^",}]*)`).exec(answer)?.[1] ?? "";
}

const devices = "/api/payments/v1/devices";
const backoffice = "/api/backoffice/v1";
const issues = "/api/reconciliation/v1/issues/";

export const DEMOS = ["collection", "qr", "issue", "robot"] as const;

export function demoOf(name: (typeof DEMOS)[number], sandbox: Sandbox, displayCredential: string): Demo {
  switch (name) {
    case "collection":
      return { title: "A collection on the smart POS", given: {}, steps: collectionSteps(sandbox) };
    case "qr": {
      const given = { SCREEN: displayCredential };
      return { title: "A collection by QR, with the guest's page", given, steps: qrSteps(sandbox) };
    }
    case "issue":
      return {
        title: "Two payments that do not fit, and what an operator does",
        given: {},
        steps: issueSteps(sandbox),
      };
    case "robot": {
      const given = { ROBOTS: sandbox.robotics.credential };
      return { title: "A serving task for a fleet of robots", given, steps: robotSteps(sandbox) };
    }
  }
}

/** At the station whose devices this demo plays itself. */
function collectionSteps(sandbox: Sandbox): Step[] {
  const { station } = sandbox;
  const path = cashierPath(station);
  return [
    signIn("OWNER", sandbox),
    signIn("CASHIER", sandbox),
    ...station.devices.flatMap(({ deviceId, kind }) =>
      enroll(kind === "smart_pos_companion" ? "COMPANION" : "SCREEN", deviceId),
    ),
    ...openOrder(path, { name: "Soup of the day", quantity: 2, unit_amount: "6.25" }),
    { note: "The display shows the order's total.", method: "GET", path: `${devices}/display/`, as: "SCREEN" },
    {
      note: "The companion is live for 25 seconds after a heartbeat, so the route smart_pos is offered.",
      method: "POST",
      path: `${devices}/heartbeat/`,
      as: "COMPANION",
    },
    { method: "GET", path: `${path}/routes/`, as: "CASHIER", until: '"smart_pos","offered":true' },
    { ...createIntent(path, "smart_pos"), note: "The cashier picks it: the collection begins." },
    {
      note: "The companion fetches the assignment and reports what its payment application said.",
      method: "GET",
      path: `${devices}/assignment/`,
      as: "COMPANION",
    },
    {
      method: "POST",
      path: `${devices}/assignment/report/`,
      as: "COMPANION",
      body: {
        intent_id: "$INTENT",
        outcome: "reported_success",
        provider_reference: "SLIP-$INTENT",
        client_idempotency_key: "first-try",
      },
    },
    { ...attest(path, "$INTENT"), note: "Reported is not paid: the cashier attests." },
    {
      note: "The display shows paid, and idle eight seconds later.",
      method: "GET",
      path: `${devices}/display/`,
      as: "SCREEN",
    },
    { ...timeline(), note: "The owner reads the payment's timeline." },
  ];
}

/** The guest decides on the page behind the QR. */
function qrSteps(sandbox: Sandbox): Step[] {
  const path = cashierPath(sandbox.demoStation);
  const display: Step = { method: "GET", path: `${devices}/display/`, as: "SCREEN" };
  return [
    signIn("CASHIER", sandbox),
    ...openOrder(path, { name: "Tea and a biscuit", quantity: 1, unit_amount: "12.03" }),
    { ...createIntent(path, "dynamic_qr"), note: "An amount that ends in 03 waits for the guest's page." },
    {
      ...display,
      note: "The provider is asked, and the display shows its QR: the address of the guest's page.",
      until: '"state":"qr"',
      keep: { QR: "qr_payload" },
    },
    { note: "The guest opens the page and approves.", method: "GET", path: "$QR" },
    { method: "POST", path: "$QR", form: "decision=approve" },
    {
      ...readIntent(path),
      note: "The provider's callback settles the payment. No cashier attests.",
      until: '"status":"succeeded"',
    },
    { ...display, note: "The display shows paid for eight seconds." },
  ];
}

function issueSteps(sandbox: Sandbox): Step[] {
  const path = cashierPath(sandbox.demoStation);
  const newestIssue: Step = {
    method: "GET",
    path: `${issues}?status=open&limit=1`,
    as: "OPERATOR",
    keep: { ISSUE: "issue_id" },
  };
  const differing = (amount: string): Step[] => [
    ...openOrder(path, { name: "Lunch", quantity: 1, unit_amount: amount }),
    createIntent(path, "dynamic_qr"),
    {
      ...readIntent(path),
      note: "The cashier sees at once that the provider reports something else, and ends the collection.",
      until: '"money_may_have_moved":"money_differs"',
    },
    { method: "POST", path: `${path}/intents/$INTENT/cancel/`, as: "CASHIER" },
  ];
  return [
    signIn("CASHIER", sandbox),
    signIn("OWNER", sandbox),
    signIn("OPERATOR", sandbox),
    ...noted(
      "An amount that ends in 09: the provider reports a payment under an unknown reference.",
      differing("12.09"),
    ),
    { ...newestIssue, note: "The operator finds the issue and attributes the payment to the order, which it pays." },
    {
      method: "POST",
      path: `${issues}$ISSUE/attribute/`,
      as: "OPERATOR",
      body: { order_id: "$ORDER", reason: "The guest showed the receipt." },
    },
    { method: "GET", path: "/api/cashier/v1/orders/$ORDER/", as: "CASHIER" },
    timeline(),
    ...noted("An amount that ends in 07: the provider took one whole unit too much.", differing("12.07")),
    { ...newestIssue, note: "It is paid back, and the operator closes the issue." },
    { method: "POST", path: `${issues}$ISSUE/close/`, as: "OPERATOR", body: { reason: "Paid back at the counter." } },
    {
      ...createIntent(path, "dynamic_qr"),
      note: "The order is still open. To collect it again, the cashier confirms that money may have moved.",
      refusedWith: "money_may_have_moved",
    },
    {
      method: "POST",
      path: `${path}/intents/`,
      as: "CASHIER",
      body: { order_id: "$ORDER", route: "cash", confirms_money_may_have_moved: true },
      keep: { CASH: "intent_id" },
    },
    attest(path, "$CASH"),
  ];
}

/** The owner offers a task, and the fleet carries it out. */
function robotSteps(sandbox: Sandbox): Step[] {
  const tasks = "/api/robotics/v1/serving-tasks/";
  return [
    signIn("OWNER", sandbox),
    {
      note: "The owner offers a task; the fleet has two minutes to accept it.",
      method: "POST",
      path: `${backoffice}/serving-tasks/`,
      as: "OWNER",
      body: {
        consumer_id: sandbox.robotics.consumerId,
        leg: "kitchen_to_table",
        manifest: [{ name: "Soup of the day", quantity: 2 }],
        destination: { name: "Table 12" },
      },
      keep: { TASK: "task_id" },
    },
    { note: "The fleet lists it, accepts it and completes it.", method: "GET", path: tasks, as: "ROBOTS" },
    { method: "POST", path: `${tasks}$TASK/accept/`, as: "ROBOTS" },
    { method: "POST", path: `${tasks}$TASK/complete/`, as: "ROBOTS" },
  ];
}

function signIn(actor: "OWNER" | "CASHIER" | "OPERATOR", sandbox: Sandbox): Step {
  const [api, person] = {
    OWNER: ["backoffice", sandbox.owner] as const,
    CASHIER: ["cashier", sandbox.cashier] as const,
    OPERATOR: ["reconciliation", sandbox.operator] as const,
  }[actor];
  const note = `The ${actor.toLowerCase()} signs in.`;
  return { note, method: "POST", path: `/api/${api}/v1/session/`, body: person, keep: { [actor]: "token" } };
}

/** A device that has enrolled before loses the credential that it has. */
function enroll(actor: Actor, deviceId: number): Step[] {
  const device = `${backoffice}/devices/${deviceId}`;
  return [
    {
      note: `The owner resets device ${deviceId}, so that a credential in use elsewhere ends, and issues a one-time code; the device claims it.`,
      method: "POST",
      path: `${device}/reset/`,
      as: "OWNER",
    },
    { method: "POST", path: `${device}/enrollment-codes/`, as: "OWNER", keep: { CODE: "code" } },
    { method: "POST", path: `${devices}/enroll/`, body: { code: "${CODE}" }, keep: { [actor]: "credential" } },
  ];
}

/** The cashier takes the lease and ends what an earlier demo may have left, which would block the next collection. */
function openOrder(path: string, line: object): Step[] {
  return [
    {
      note: "The cashier takes the station and opens an order.",
      method: "POST",
      path: `${path}/lease/`,
      as: "CASHIER",
    },
    { method: "GET", path: `${path}/intents/`, as: "CASHIER", keep: { EARLIER: "intent_id" } },
    { method: "POST", path: `${path}/intents/$EARLIER/cancel/`, as: "CASHIER", onlyWith: "EARLIER" },
    { method: "POST", path: `${path}/orders/`, as: "CASHIER", body: { lines: [line] }, keep: { ORDER: "order_id" } },
  ];
}

function createIntent(path: string, route: "smart_pos" | "dynamic_qr"): Step {
  const body = { order_id: "$ORDER", route };
  return { method: "POST", path: `${path}/intents/`, as: "CASHIER", body, keep: { INTENT: "intent_id" } };
}

const readIntent = (path: string): Step => ({ method: "GET", path: `${path}/intents/$INTENT/`, as: "CASHIER" });

const attest = (path: string, intent: string): Step => ({
  method: "POST",
  path: `${path}/intents/${intent}/attest/`,
  as: "CASHIER",
});

const timeline = (): Step => ({ method: "GET", path: `${backoffice}/intents/$INTENT/timeline/`, as: "OWNER" });

function noted(note: string, [first, ...rest]: readonly Step[]): Step[] {
  return first === undefined ? [] : [{ ...first, note }, ...rest];
}

const cashierPath = ({ stationId }: Sandbox["station"]): string => `/api/cashier/v1/stations/${stationId}`;
