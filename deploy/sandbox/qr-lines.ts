/** Collections by QR as lines to paste into a shell, at the demo station with its virtual display. */
import type { SandboxFacts } from "./facts.ts";
import {
  AS_CASHIER,
  AS_OPERATOR,
  AS_OWNER,
  cancelLine,
  cashierLine,
  cashierPath,
  DEVICES,
  FIELD,
  intentEcho,
  intentLine,
  JSON_TYPE,
  leaseLines,
  operatorLine,
  orderLine,
  ownerLine,
  untilIntentLine,
  untilLine,
} from "./shell-lines.ts";

const issues = "$BASE/api/reconciliation/v1/issues/";

/** The guest decides on the page behind the QR. `displayCredential` is the file of the virtual display, as one word of a shell. */
export function qrLines(facts: SandboxFacts, displayCredential: string): readonly string[] {
  const path = cashierPath(facts.demoStation);
  const display = `${DEVICES}/display/ -H "authorization: Bearer $SCREEN"`;
  return [
    `BASE=${facts.baseUrl}`,
    FIELD,
    cashierLine(facts),
    `SCREEN=$(field credential < ${displayCredential})`,
    "# The cashier takes the station, opens an order and picks the QR. An amount that ends in 03 waits for the guest page.",
    ...leaseLines(path),
    orderLine(path, { name: "Tea and a biscuit", quantity: 1, unit_amount: "12.03" }),
    intentLine(path, "dynamic_qr"),
    "# The provider is asked; the display shows its QR, which holds the address of the guest page.",
    untilLine(display, '"state":"qr"'),
    `QR=$(echo "$STATE" | field qr_payload); curl -sS "$QR"`,
    "# The guest approves there. The callback of the provider settles: nobody attests. The display shows paid for eight seconds.",
    `curl -sS -o /dev/null "$QR" -d decision=approve`,
    untilIntentLine(path, '"status":"succeeded"'),
    `curl -sS ${display}; echo`,
  ];
}

/** Money that does not fit: an operator attributes what belongs to an order, and closes what was paid back. */
export function operatorLines(facts: SandboxFacts): readonly string[] {
  const path = cashierPath(facts.demoStation);
  return [
    `BASE=${facts.baseUrl}`,
    FIELD,
    cashierLine(facts),
    ownerLine(facts),
    operatorLine(facts),
    ...leaseLines(path),
    "# An amount that ends in 09: the provider tells of money under a reference that nobody gave it. The cashier sees at once",
    "# that money differs, and the display no longer shows the QR. The cashier ends the collection.",
    ...differingLines(path, "12.09"),
    "# The operator finds the issue and attributes the money to the order, which is paid by it. Its timeline tells who and why.",
    ...issueLines(),
    `curl -sS ${issues}$ISSUE/attribute/ ${AS_OPERATOR} ${JSON_TYPE} -d '{"order_id":'$ORDER',"reason":"The guest showed the receipt."}'; echo`,
    `curl -sS $BASE/api/cashier/v1/orders/$ORDER/ ${AS_CASHIER}; echo`,
    `curl -sS $BASE/api/backoffice/v1/intents/$INTENT/timeline/ ${AS_OWNER}; echo`,
    "# An amount that ends in 07: one whole unit too much was taken. It is paid back, and the operator closes the issue; the",
    "# order stays open, and to collect it again the cashier confirms that money may have moved.",
    ...differingLines(path, "12.07"),
    ...issueLines(),
    `curl -sS ${issues}$ISSUE/close/ ${AS_OPERATOR} ${JSON_TYPE} -d '{"reason":"Paid back at the counter."}'; echo`,
    intentLine(path, "dynamic_qr"),
    `ANSWER=$(curl -sS ${path}/intents/ ${AS_CASHIER} ${JSON_TYPE} -d '{"order_id":'$ORDER',"route":"cash","confirms_money_may_have_moved":true}'); CASH=$(echo "$ANSWER" | field intent_id); ${intentEcho("$CASH")}`,
    `curl -sS -X POST ${path}/intents/$CASH/attest/ ${AS_CASHIER}; echo`,
  ];
}

function differingLines(path: string, amount: string): string[] {
  return [
    orderLine(path, { name: "Lunch", quantity: 1, unit_amount: amount }),
    intentLine(path, "dynamic_qr"),
    untilIntentLine(path, '"money_may_have_moved":"money_differs"'),
    cancelLine(path),
  ];
}

/** The newest open issue. */
function issueLines(): string[] {
  return [
    `ANSWER=$(curl -sS "${issues}?status=open&limit=1" ${AS_OPERATOR}); echo "$ANSWER"; ISSUE=$(echo "$ANSWER" | field issue_id)`,
  ];
}
