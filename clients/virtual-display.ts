/**
 * A customer display without a screen. It is an ordinary client of the device API and writes one line per change.
 *
 *   BASE_URL=http://127.0.0.1:8480 ENROLLMENT_CODE=XXXXX-XXXXX CREDENTIAL_FILE=display.json node clients/virtual-display.ts
 */
import { createDisplayTurn } from "./display-turn.ts";
import { runVirtualDevice } from "./virtual-device.ts";

await runVirtualDevice({ name: "virtual-display", createTurn: createDisplayTurn, isSilent: () => false });
