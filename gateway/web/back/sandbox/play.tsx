/** Starts test payments at one sandbox: one click for each outcome, with the guest's phone beside it. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { currencyDigits } from "../../shared/amounts.ts";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { money } from "../../shared/format.ts";
import { QrCode } from "../../shared/qr-code.tsx";
import { FailureNotice } from "../../shared/states.tsx";
import { Countdown } from "../../shared/time.tsx";
import { announce } from "../shell/dialogs.tsx";
import { label } from "../shell/labels.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import type { Intent, Sandbox, SandboxCashier } from "./cashier.ts";
import { words } from "./words.ts";

/** The last digits of an amount that the sandbox provider simply approves. */
const APPROVED_ENDING = "50";
const POLL_MS = 1_000;

/** A price whose last two digits are these: 12.50, or 1250 in a currency without decimals. */
const priceWith = (ending: string, currency: string): string =>
  currencyDigits(currency) === 0 ? `12${ending}` : `12.${ending}`;

interface PlayProps {
  readonly sandbox: Sandbox;
  readonly cashier: SandboxCashier | undefined;
  readonly reload: () => unknown;
}

export function Play({ sandbox, cashier, reload }: PlayProps) {
  const intent = useSignal<Intent | null>(null);
  const failure = useSignal<Failure | null>(null);
  const isUnderWay = intent.value !== null && intent.value.ended_at === null;
  const isBusy = useSignal(false);
  useEffect(() => {
    if (!isUnderWay) return;
    const poll = async (): Promise<void> => {
      const before = intent.peek();
      const result = before === null ? undefined : await cashier?.read(before.intent_id);
      if (result?.ok === true && intent.peek()?.intent_id === result.reply.intent_id) intent.value = result.reply;
    };
    const timer = setInterval(() => void poll(), POLL_MS);
    return () => clearInterval(timer);
  }, [isUnderWay]);
  const collect = async (price: string, name: string): Promise<void> => {
    if (cashier === undefined || isBusy.peek()) return;
    isBusy.value = true;
    const result = await cashier.collect(price, name.slice(0, 100));
    isBusy.value = false;
    failure.value = result.ok ? null : result;
    if (result.ok) intent.value = result.reply;
  };
  const cancel = async (): Promise<void> => {
    if (intent.value === null || cashier === undefined) return;
    const result = await cashier.cancel(intent.value.intent_id);
    failure.value = result.ok ? null : result;
    if (result.ok) intent.value = result.reply;
  };
  const rename = async (ending: string): Promise<void> => {
    const result = await call("PATCH /api/backoffice/v1/devices/{device_id}/", {
      path: { device_id: sandbox.companion.device_id },
      body: { name: `${words().companion} ${ending}` },
    });
    failure.value = result.ok ? null : result;
    if (result.ok) announce(words().companionNamed, result.reply);
    await reload();
  };
  // An object lists the keys "10" and above before "01".
  // oxlint-disable-next-line unicorn/no-array-sort
  const endings = Object.entries(words().provider).sort(([a], [b]) => a.localeCompare(b));
  const outcomes = [[APPROVED_ENDING, words().approves] as const, ...endings].map(([ending, does]) => ({
    price: priceWith(ending, sandbox.currency),
    does,
  }));
  const because = isUnderWay ? words().still : null;
  return (
    <section class="stack" aria-labelledby="play">
      <h2 id="play">
        {words().play}: {sandbox.name}
      </h2>
      <p class="soft">{words().playIntro}</p>
      {failure.value !== null && <FailureNotice failure={failure.value} />}
      {because !== null && <p role="status">{because}</p>}
      <div class="columns">
        <div class="stack">
          <h3>{words().outcomes}</h3>
          <ul class="outcomes">
            {outcomes.map(({ price, does }) => (
              <li key={price}>
                <button
                  type="button"
                  class="button outcome"
                  aria-disabled={isUnderWay || isBusy.value}
                  onClick={() => void (isUnderWay || collect(price, does))}
                >
                  <span class="numbers">{money(price, sandbox.currency)}</span>
                  <span class="outcome-text">{does}</span>
                </button>
              </li>
            ))}
          </ul>
          <h3>{words().companionPart}</h3>
          <p class="small soft">
            {words().companionIntro} ({sandbox.companion.name})
          </p>
          <ul class="outcomes">
            {Object.entries(words().behaviour).map(([ending, does]) => (
              <li key={ending}>
                <button type="button" class="button outcome" onClick={() => void rename(ending)}>
                  <span>{ending}</span>
                  <span class="outcome-text">{does}</span>
                </button>
              </li>
            ))}
          </ul>
        </div>
        <Phone intent={intent.value} onCancel={cancel} />
      </div>
    </section>
  );
}

interface PhoneProps {
  readonly intent: Intent | null;
  readonly onCancel: () => unknown;
}

/** What the guest's phone shows: the QR code, and a link to the provider's page, which opens in a new window. */
function Phone({ intent, onCancel }: PhoneProps) {
  const payload = intent?.provider?.qr_payload ?? "";
  const isUnderWay = intent !== null && intent.ended_at === null;
  return (
    <aside class="phone" aria-label={words().phone}>
      <div class="phone-screen stack" aria-live="polite">
        <h3>{words().phone}</h3>
        {intent === null && <p class="soft">{words().phoneEmpty}</p>}
        {intent !== null && (
          <>
            <p class="phone-amount">{money(intent.amount, intent.currency)}</p>
            <p>
              <StatusTag status={intent.status} />{" "}
              {intent.end_reason !== "" && <span class="small">{label("endReason", intent.end_reason)}</span>}
              {isUnderWay && <Countdown until={intent.expires_at} since={intent.created_at} label={words().state} />}
            </p>
            {isUnderWay && payload === "" && (
              <p class="soft">
                {intent.money_may_have_moved === "money_differs" ? words().otherMoney : words().waitingForQr}
              </p>
            )}
            {isUnderWay && payload !== "" && (
              <>
                <QrCode content={payload} label={payload} />
                {/^https?:\/\//.test(payload) && (
                  <a class="button button-main" href={payload} target="_blank" rel="noopener noreferrer">
                    {words().guestPage}
                  </a>
                )}
                <p class="small soft">{words().scan}</p>
              </>
            )}
            {isUnderWay && <Button onClick={onCancel}>{words().cancel}</Button>}
            {!isUnderWay && (
              <p>
                <a href={`/back/payments/?payment=${intent.intent_id}`}>{words().timeline}</a>
              </p>
            )}
          </>
        )}
      </div>
    </aside>
  );
}
