/** The one-time code of a device, shown once: as text, with a countdown, and for a display as a QR code that pairs it. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { now, serverTime } from "../../shared/clock.ts";
import { Dialog } from "../../shared/dialog.tsx";
import type { ReplyOf } from "../../shared/operations.ts";
import { QrCode } from "../../shared/qr-code.tsx";
import { Notice } from "../../shared/states.tsx";
import { Countdown } from "../../shared/time.tsx";
import { toast } from "../../shared/toasts.tsx";
import { Copyable, closeDialog, openForm, showDialog, useCloseThis } from "../shell/dialogs.tsx";
import { shellWords } from "../shell/words.ts";
import { words } from "./words.ts";

interface CodeDevice {
  readonly device_id: number;
  readonly name: string;
  readonly kind: string;
}
type Issued = ReplyOf<"POST /api/backoffice/v1/devices/{device_id}/enrollment-codes/">;

const SECONDS = { short: 900, hour: 3_600, day: 86_400, week: 604_800 };
/** How often the dialog checks whether the device has claimed the code, or an owner has ended it. */
const CLAIM_POLL_MS = 2_000;

export function issueCode(device: CodeDevice, then: () => unknown): void {
  openForm({
    title: words().issue,
    intro: words().issueIntro,
    action: words().issue,
    fields: [
      {
        name: "seconds",
        label: words().validFor,
        options: [
          { value: String(SECONDS.short), text: words().minutes(15) },
          { value: String(SECONDS.hour), text: words().minutes(60) },
          { value: String(SECONDS.day), text: words().day },
          { value: String(SECONDS.week), text: words().week },
        ],
      },
    ],
    run: ({ seconds }) =>
      call("POST /api/backoffice/v1/devices/{device_id}/enrollment-codes/", {
        path: { device_id: device.device_id },
        body: { lifetime_seconds: Number(seconds) },
      }),
    after: (issued) => {
      showDialog(<CodeDialog device={device} issued={issued} onEnded={then} />);
      return then();
    },
  });
}

/** The display reads the code after `#`. Browsers do not send that part to a server. */
export const pairingAddress = (code: string): string => `${location.origin}/display/#code=${code}`;

interface CodeDialogProps {
  readonly device: CodeDevice;
  readonly issued: Issued;
  readonly onEnded: () => unknown;
}

function CodeDialog({ device, issued, onEnded }: CodeDialogProps) {
  const { code, enrollment_code: facts } = issued;
  const closeThis = useCloseThis();
  const isRevoked = useSignal(false);
  const isOver = isRevoked.value || Date.parse(facts.expires_at) <= now.value;
  useEffect(() => {
    serverTime(facts.created_at);
    let hasEnded = false;
    const path = { device_id: device.device_id };
    const poll = async (): Promise<void> => {
      const result = await call("GET /api/backoffice/v1/devices/{device_id}/enrollment-codes/", { path });
      const status =
        result.ok && result.reply.enrollment_codes.find(({ code_id }) => code_id === facts.code_id)?.status;
      if ((status !== "spent" && status !== "revoked") || hasEnded) return;
      hasEnded = true;
      clearInterval(timer);
      if (status === "revoked") {
        // Another owner has ended it, or issued another one.
        isRevoked.value = true;
      } else {
        // The person may have closed it meanwhile, and opened another one.
        closeThis();
        toast(words().claimed);
      }
      await onEnded();
    };
    const timer = setInterval(() => void poll(), CLAIM_POLL_MS);
    return () => clearInterval(timer);
  }, [facts.code_id]);
  return (
    // Only the button closes it, not a key that is pressed by mistake: the code is shown once.
    <Dialog title={words().codeTitle(device.name)} onClose={() => undefined}>
      {isOver ? (
        <Notice tone="warn" title={words().codeIsOver} isUrgent />
      ) : (
        <>
          <p>{shellWords().shownOnce}</p>
          <Copyable value={code} label={words().code} class="secret-value" />
          <p>
            {words().codeLeft} <Countdown until={facts.expires_at} since={facts.created_at} label={words().codeLeft} />
          </p>
          {device.kind === "customer_display" && (
            <>
              <QrCode content={pairingAddress(code)} label={words().qrLabel} />
              <p class="small">{words().scan}</p>
              <Copyable value={pairingAddress(code)} label={words().displayLink} class="small" />
            </>
          )}
        </>
      )}
      <div class="row row-spread">
        <span />
        <Button local onClick={closeDialog}>
          {shellWords().noted}
        </Button>
      </div>
    </Dialog>
  );
}
