/** Collections on the smart POS route, and a serving task, as lines to paste into a shell. */
import type { SandboxDevice, SandboxFacts } from "./facts.ts";
import {
  AS_CASHIER,
  AS_OWNER,
  attestLine,
  cashierLine,
  cashierPath,
  DEVICES,
  FIELD,
  intentLine,
  JSON_TYPE,
  leaseLines,
  orderLine,
  ownerLine,
  untilIntentLine,
} from "./shell-lines.ts";

/** At the newcomer's own station, whose devices are played by curl. A comment line says what each step shows. */
export function collectionLines(facts: SandboxFacts): readonly string[] {
  const { station } = facts;
  const companion = station.devices.find((device) => device.kind === "smart_pos_companion");
  const display = station.devices.find((device) => device.kind === "customer_display");
  if (companion === undefined || display === undefined) return [];
  const path = cashierPath(station);
  return [
    // In a shell of its own, which a code that is spent ends, so that nothing runs on without a credential.
    "(",
    `BASE=${facts.baseUrl}`,
    FIELD,
    "# The owner and the cashier log in.",
    ownerLine(facts),
    cashierLine(facts),
    ...enrollLines([
      ["COMPANION", companion],
      ["SCREEN", display],
    ]),
    "# The cashier takes the station and opens an order; the display shows its total.",
    ...leaseLines(path),
    orderLine(path, { name: "Soup of the day", quantity: 2, unit_amount: "6.25" }),
    displayLine(),
    "# The companion is live for 25 seconds after a heartbeat, so the smart POS route is offered; the cashier picks it.",
    `curl -sS -X POST ${DEVICES}/heartbeat/ -H "authorization: Bearer $COMPANION"; echo`,
    `for second in 1 2 3 4 5 6 7 8 9 10; do ROUTES=$(curl -sS ${path}/routes/ ${AS_CASHIER}); case $ROUTES in *'"smart_pos","offered":true'*) break;; esac; sleep 1; done; echo "$ROUTES"`,
    intentLine(path, "smart_pos"),
    "# The companion fetches the assignment and reports what its payment application said.",
    `curl -sS ${DEVICES}/assignment/ -H "authorization: Bearer $COMPANION"; echo`,
    `curl -sS ${DEVICES}/assignment/report/ -H "authorization: Bearer $COMPANION" ${JSON_TYPE} -d '{"intent_id":'$INTENT',"outcome":"reported_success","provider_reference":"SLIP-'$INTENT'","client_idempotency_key":"first-try"}'; echo`,
    "# Reported is not paid: the cashier attests. The display shows paid, and eight seconds later idle.",
    attestLine(path),
    displayLine(),
    "# The story of the payment, for the owner.",
    `curl -sS $BASE/api/backoffice/v1/intents/$INTENT/timeline/ ${AS_OWNER}; echo`,
    ")",
  ];
}

/** At the demo station: the cashier's part only. */
export function demoLines(facts: SandboxFacts): readonly string[] {
  const path = cashierPath(facts.demoStation);
  return [
    `BASE=${facts.baseUrl}`,
    FIELD,
    cashierLine(facts),
    "# The cashier takes the station, ends what earlier lines may have left, opens an order and picks the smart POS route.",
    ...leaseLines(path),
    orderLine(path, { name: "Tea", quantity: 1, unit_amount: "3.10" }),
    intentLine(path, "smart_pos"),
    "# The virtual companion fetches the assignment and reports within seconds; the cashier looks until it has, and attests.",
    untilIntentLine(path, '"status":"processing"'),
    attestLine(path),
  ];
}

/** The owner offers a task, and the fleet carries it out. */
export function servingTaskLines(facts: SandboxFacts): readonly string[] {
  const { consumerId, credential } = facts.robotics;
  const tasks = "$BASE/api/robotics/v1/serving-tasks/";
  const offer = {
    consumer_id: consumerId,
    leg: "kitchen_to_table",
    manifest: [{ name: "Soup of the day", quantity: 2 }],
    destination: { name: "Table 12" },
  };
  const asRobots = `-H "authorization: Bearer $ROBOTS"`;
  return [
    `BASE=${facts.baseUrl}`,
    FIELD,
    `ROBOTS=${credential}`,
    ownerLine(facts),
    "# The owner offers a task; the fleet has two minutes to accept it.",
    `ANSWER=$(curl -sS $BASE/api/backoffice/v1/serving-tasks/ ${AS_OWNER} ${JSON_TYPE} -d '${JSON.stringify(offer)}'); TASK=$(echo "$ANSWER" | field task_id); echo "task $(echo "$ANSWER" | field display_number) (task_id $TASK)"`,
    "# The fleet sees it in its list, accepts it, and says when it is done.",
    `curl -sS ${tasks} ${asRobots}; echo`,
    `curl -sS -X POST ${tasks}$TASK/accept/ ${asRobots}; echo`,
    `curl -sS -X POST ${tasks}$TASK/complete/ ${asRobots}; echo`,
  ];
}

function displayLine(): string {
  return `curl -sS ${DEVICES}/display/ -H "authorization: Bearer $SCREEN"; echo`;
}

/** A device that has enrolled before is reset first: its new code replaces the credential that somebody else may hold. */
function enrollLines(devices: readonly (readonly [variable: string, device: SandboxDevice])[]): string[] {
  const enrolled = devices.filter(([, device]) => device.enrollmentCode === null);
  const ids = enrolled.map(([, device]) => device.deviceId).join(" and ");
  return [
    "# The companion and the display claim their one-time codes.",
    ...(enrolled.length === 0
      ? []
      : [`# This resets device ${ids}, which enrolled before: a credential that is in use elsewhere ends.`]),
    ...devices.flatMap(([variable, device]) => enrollOne(variable, device)),
  ];
}

function enrollOne(variable: string, device: SandboxDevice): string[] {
  const { deviceId, enrollmentCode } = device;
  const path = `$BASE/api/backoffice/v1/devices/${deviceId}`;
  const claim = (code: string): string[] => [
    `${variable}=$(curl -sS $BASE/api/payments/v1/devices/enroll/ ${JSON_TYPE} -d '{"code":"${code}"}' | field credential)`,
    `[ -n "$${variable}" ] || { echo "Device ${deviceId} did not enroll: its code is spent or has expired. Start again for new lines."; exit; }`,
  ];
  if (enrollmentCode !== null) return claim(enrollmentCode);
  return [
    `curl -fsS -o /dev/null -X POST ${path}/reset/ ${AS_OWNER} || echo "Device ${deviceId} was not reset."`,
    ...claim(`'$(curl -sS -X POST ${path}/enrollment-codes/ ${AS_OWNER} | field code)'`),
  ];
}
