/**
 * A customer display to start from. Replace `show` by your screen; the kit does everything else.
 *
 *   BASE_URL=http://127.0.0.1:8480 CODE=XXXXX-XXXXX FILE=display.json node_modules/.bin/node clients/device-kit/samples/display.ts
 *
 * In a page: import "device-kit/display" and "device-kit/storage/indexed-db", and use `indexedDbStorage(indexedDB)`.
 */
import { display } from "../display.ts";
import { fileStorage } from "../storage/file.ts";

const { BASE_URL = "http://127.0.0.1:8480", CODE, FILE = "display.json" } = process.env;

const show = (line: string): void => void process.stdout.write(`${line}\n`);

const screen = display({
  baseUrl: BASE_URL,
  storage: fileStorage(FILE),
  code: CODE,
  render(shown, { ageMs, isStale, blockedReason, needsCode }) {
    if (needsCode) return show("Enter a new enrollment code.");
    if (blockedReason !== "") return show(`This display is blocked: ${blockedReason}.`);
    // A stale state may be wrong, so the kit hides a QR code and "paid".
    if (isStale) show(`No connection for ${Math.round(ageMs / 1_000)} seconds.`);
    if (shown === null) return show("Please wait.");
    const { state, amount, currency, order_display_number: order, qr_payload: qr } = shown;
    switch (state) {
      case "idle":
        return show("Welcome.");
      case "total":
        return show(`Order ${order}: ${currency} ${amount}`);
      case "qr":
        return show(`Order ${order}: ${currency} ${amount}, scan ${qr}`);
      case "paid":
        return show(`Order ${order}: paid ${currency} ${amount}`);
      default:
        // A later version of the service may have more states.
        return show(`${state}: ${currency} ${amount}`);
    }
  },
});

for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => screen.stop());
