/** The guest's phone: the QR code, and a button for the provider's page. It opens a window, because the page forbids frames. */
import { Button } from "../shared/button.tsx";
import { money } from "../shared/format.ts";
import { QrCode } from "../shared/qr-code.tsx";
import { live } from "./station.ts";
import { words } from "./words.ts";

/** A window with the size of a phone. */
const WINDOW = "popup,noopener,noreferrer,width=400,height=760";

export function Phone() {
  const intent = live.value?.active_intent ?? null;
  const isQr = intent?.route === "dynamic_qr";
  const payload = intent?.provider?.qr_payload ?? "";
  return (
    <section class="phone" aria-labelledby="phone">
      <h2 id="phone">{words().phone}</h2>
      <div class="phone-screen stack" aria-live="polite">
        {intent === null || !isQr ? (
          <p class="soft">{words().phoneEmpty}</p>
        ) : (
          <>
            <p class="phone-amount numbers">{money(intent.amount, intent.currency)}</p>
            {payload !== "" && <QrCode content={payload} label={payload} />}
            {payload === "" && (
              <p class="soft">
                {intent.money_may_have_moved === "money_differs" ? words().otherMoney : words().waitingForQr}
              </p>
            )}
            {/^https?:\/\//.test(payload) && (
              <Button kind="main" class="button-wide" onClick={() => void window.open(payload, "_blank", WINDOW)}>
                {words().guestPage}
              </Button>
            )}
          </>
        )}
      </div>
    </section>
  );
}
