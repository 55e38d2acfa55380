/** A whole collection as lines to paste into a shell: needs curl and sed only, and each line works as it stands. */
import type { SandboxDevice, SandboxFacts } from "./facts.ts";

const JSON_TYPE = `-H 'content-type: application/json'`;

/** One block per step; a comment line says what the step shows. */
export function curlLines(facts: SandboxFacts): readonly string[] {
  const { station } = facts;
  const companion = station.devices.find((device) => device.kind === "smart_pos_companion");
  const display = station.devices.find((device) => device.kind === "customer_display");
  if (companion === undefined || display === undefined) return [];
  const stationPath = `$BASE/api/cashier/v1/stations/${station.stationId}`;
  const devicePath = "$BASE/api/payments/v1/devices";
  return [
    `BASE=${facts.baseUrl}`,
    String.raw`field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }`,
    "# The owner and the cashier log in.",
    `OWNER=$(curl -sS $BASE/api/backoffice/v1/session/ ${JSON_TYPE} -d '${JSON.stringify(facts.owner)}' | field token)`,
    `CASHIER=$(curl -sS $BASE/api/cashier/v1/session/ ${JSON_TYPE} -d '${JSON.stringify(facts.cashier)}' | field token)`,
    "# The companion and the display claim their one-time codes.",
    ...enrollLines("COMPANION", companion),
    ...enrollLines("DISPLAY", display),
    "# The cashier takes the station and opens an order; the display shows its total.",
    `curl -sS -X POST ${stationPath}/lease/ -H "authorization: Bearer $CASHIER"; echo`,
    `ORDER=$(curl -sS ${stationPath}/orders/ -H "authorization: Bearer $CASHIER" ${JSON_TYPE} -d '{"lines":[{"name":"Soup of the day","quantity":2,"unit_amount":"6.25"}]}' | field order_id); echo "order $ORDER"`,
    `curl -sS ${devicePath}/display/ -H "authorization: Bearer $DISPLAY"; echo`,
    "# The companion is live for 25 seconds after a heartbeat, so the smart POS route is offered; the cashier picks it.",
    `curl -sS -X POST ${devicePath}/heartbeat/ -H "authorization: Bearer $COMPANION"; echo`,
    `for second in 1 2 3 4 5 6 7 8 9 10; do ROUTES=$(curl -sS ${stationPath}/routes/ -H "authorization: Bearer $CASHIER"); case $ROUTES in *'"smart_pos","offered":true'*) break;; esac; sleep 1; done; echo "$ROUTES"`,
    `INTENT=$(curl -sS ${stationPath}/intents/ -H "authorization: Bearer $CASHIER" ${JSON_TYPE} -d '{"order_id":'$ORDER',"route":"smart_pos"}' | field intent_id); echo "intent $INTENT"`,
    "# The companion fetches the assignment and reports what its payment application said.",
    `curl -sS ${devicePath}/assignment/ -H "authorization: Bearer $COMPANION"; echo`,
    `curl -sS ${devicePath}/assignment/report/ -H "authorization: Bearer $COMPANION" ${JSON_TYPE} -d '{"intent_id":'$INTENT',"outcome":"reported_success","provider_reference":"SLIP-0001","client_idempotency_key":"first-try"}'; echo`,
    "# Reported is not paid: the cashier attests. The display shows paid, and eight seconds later idle.",
    `curl -sS -X POST ${stationPath}/intents/$INTENT/attest/ -H "authorization: Bearer $CASHIER"; echo`,
    `curl -sS ${devicePath}/display/ -H "authorization: Bearer $DISPLAY"; echo`,
    "# The payment's story, for the owner.",
    `curl -sS $BASE/api/backoffice/v1/intents/$INTENT/timeline/ -H "authorization: Bearer $OWNER"; echo`,
  ];
}

/** A device that has enrolled before is reset first: its new code replaces the credential that somebody else may hold. */
function enrollLines(variable: string, device: SandboxDevice): string[] {
  const path = `$BASE/api/backoffice/v1/devices/${device.deviceId}`;
  const owner = `-H "authorization: Bearer $OWNER"`;
  const claim = (code: string): string =>
    `${variable}=$(curl -sS $BASE/api/payments/v1/devices/enroll/ ${JSON_TYPE} -d '{"code":"'${code}'"}' | field credential)`;
  if (device.enrollmentCode !== null) return [claim(device.enrollmentCode)];
  return [
    `curl -sS -o /dev/null -X POST ${path}/reset/ ${owner}`,
    claim(`$(curl -sS -X POST ${path}/enrollment-codes/ ${owner} | field code)`),
  ];
}
