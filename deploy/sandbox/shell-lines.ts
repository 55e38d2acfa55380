/** The pieces that whole collections in a shell are made of: each line needs curl and sed only, and works as it stands. */
import type { SandboxFacts, SandboxStation } from "./facts.ts";

export const JSON_TYPE = `-H 'content-type: application/json'`;
export const FIELD = String.raw`field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }`;
export const AS_CASHIER = `-H "authorization: Bearer $CASHIER"`;
export const AS_OWNER = `-H "authorization: Bearer $OWNER"`;
export const AS_OPERATOR = `-H "authorization: Bearer $OPERATOR"`;
export const DEVICES = "$BASE/api/payments/v1/devices";
/** How often a line looks for what others bring about, once a second. */
const LOOKS = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15";

export function ownerLine(facts: SandboxFacts): string {
  return `OWNER=$(curl -sS $BASE/api/backoffice/v1/session/ ${JSON_TYPE} -d '${JSON.stringify(facts.owner)}' | field token)`;
}

export function cashierLine(facts: SandboxFacts): string {
  return `CASHIER=$(curl -sS $BASE/api/cashier/v1/session/ ${JSON_TYPE} -d '${JSON.stringify(facts.cashier)}' | field token)`;
}

export function operatorLine(facts: SandboxFacts): string {
  return `OPERATOR=$(curl -sS $BASE/api/reconciliation/v1/session/ ${JSON_TYPE} -d '${JSON.stringify(facts.operator)}' | field token)`;
}

export function cashierPath(station: SandboxStation): string {
  return `$BASE/api/cashier/v1/stations/${station.stationId}`;
}

/** Takes the station; a collection that earlier lines left under way would stand in the way of the next one. */
export function leaseLines(path: string): string[] {
  const newest = String.raw`sed -n 's/^{"intents":\[{"intent_id":\([0-9]*\).*/\1/p'`;
  return [
    `curl -sS -X POST ${path}/lease/ ${AS_CASHIER}; echo`,
    `LEFT=$(curl -sS ${path}/intents/ ${AS_CASHIER} | ${newest}); [ -z "$LEFT" ] || curl -sS -o /dev/null -X POST ${path}/intents/$LEFT/cancel/ ${AS_CASHIER}`,
  ];
}

export function orderLine(path: string, line: object): string {
  return `ANSWER=$(curl -sS ${path}/orders/ ${AS_CASHIER} ${JSON_TYPE} -d '${JSON.stringify({ lines: [line] })}'); ORDER=$(echo "$ANSWER" | field order_id); echo "order $(echo "$ANSWER" | field order_display_number) (order_id $ORDER)"`;
}

/** Begins a collection, or says in words why it was not begun. */
export function intentLine(path: string, route: "smart_pos" | "dynamic_qr"): string {
  return `ANSWER=$(curl -sS ${path}/intents/ ${AS_CASHIER} ${JSON_TYPE} -d '{"order_id":'$ORDER',"route":"${route}"}'); INTENT=$(echo "$ANSWER" | field intent_id); if [ -n "$INTENT" ]; then ${intentEcho("$INTENT")}; else echo "No collection was begun: $(echo "$ANSWER" | field detail) ($(echo "$ANSWER" | field code))"; fi`;
}

/** Names the collection of the last answer by its number at the station, as timelines do, and by its id, as paths do. */
export function intentEcho(id: string): string {
  return `echo "intent $(echo "$ANSWER" | field intent_display_number) (intent_id ${id})"`;
}

/** Reads the collection once a second until its answer holds this text, and shows the last answer. */
export function untilIntentLine(path: string, text: string): string {
  return untilLine(`${path}/intents/$INTENT/ ${AS_CASHIER}`, text);
}

/** Asks once a second until the answer holds this text, and shows the last one. */
export function untilLine(asked: string, text: string): string {
  return `for second in ${LOOKS}; do STATE=$(curl -sS ${asked}); case $STATE in *'${text}'*) break;; esac; sleep 1; done; echo "$STATE"`;
}

export function attestLine(path: string): string {
  return `curl -sS -X POST ${path}/intents/$INTENT/attest/ ${AS_CASHIER}; echo`;
}

export function cancelLine(path: string): string {
  return `curl -sS -X POST ${path}/intents/$INTENT/cancel/ ${AS_CASHIER}; echo`;
}
