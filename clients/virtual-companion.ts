/**
 * A smart POS companion without hardware. It uses the device kit and is an ordinary client of the device API. It reports a
 * success for each collection about two seconds after the hand-over, unless the device's name or the amount causes another
 * behaviour (`magic-behaviours.ts`).
 *
 *   BASE_URL=http://127.0.0.1:8480 ENROLLMENT_CODE=XXXXX-XXXXX CREDENTIAL_FILE=companion.json node clients/virtual-companion.ts
 */
import { isReady, magicCompanion } from "./magic-companion.ts";
import { runKitDevice } from "./virtual-device.ts";

await runKitDevice({ name: "virtual-companion", start: magicCompanion, isReady });
