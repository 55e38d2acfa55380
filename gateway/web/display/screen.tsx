/** The screen of the display: its content by state, and a footer with the age of the state. */
import type { ComponentChildren } from "preact";
import { moneyIn } from "../shared/money.ts";
import { QrCode } from "../shared/qr-code.tsx";
import { localeOf } from "../shared/stored-language.ts";
import { FitText } from "./fit-text.tsx";
import { PairingScreen } from "./pairing.tsx";
import type { Actions, View } from "./view.ts";
import { chosenLanguage, words } from "./words.ts";

interface ViewProps {
  readonly view: View;
}

export function Screen({ view, actions }: ViewProps & { readonly actions: Actions }) {
  const { phase, isStopped, blockedReason, state, isOpenElsewhere } = view;
  if (isOpenElsewhere)
    return <Message view={view} kind="elsewhere" title={words().elsewhere} help={words().elsewhereHelp} />;
  if (phase === "needs_code" || phase === "enrolling" || isStopped)
    return <PairingScreen view={view} actions={actions} />;
  if (blockedReason !== "") return <Blocked view={view} />;
  if (state === null) return <Nothing view={view} />;
  const { order_display_number: order, currency, qr_payload: payload } = state;
  const amount = moneyIn(localeOf(chosenLanguage()), state.amount, currency);
  const orderLine = order > 0 ? words().order(String(order)) : "";
  switch (state.state) {
    case "idle":
      return (
        <Frame view={view} kind="idle">
          <FitText isHeading class="headline" text={words().welcome} heightShare={0.2} />
        </Frame>
      );
    case "qr":
      return (
        <Frame view={view} kind="qr">
          <div class="qr-words">
            <h1 class="lead">{words().scan}</h1>
            <FitText class="amount" text={amount} heightShare={0.18} />
            <p class="order">{orderLine}</p>
            <p class="hint">{payload === "" ? words().noQr : words().scanHelp}</p>
          </div>
          {payload !== "" && (
            <div class="qr-box">
              <QrCode content={payload} label={words().qrLabel(amount)} />
            </div>
          )}
        </Frame>
      );
    case "paid":
      return (
        <Frame view={view} kind="paid">
          <Check />
          <FitText isHeading class="headline" text={words().paid} heightShare={0.18} />
          <p class="lead">{amount}</p>
          <p class="order">
            {orderLine} · {words().thanks}
          </p>
        </Frame>
      );
    default:
      // `total`, and states that a later version of the service adds: the amount is correct in any case.
      return (
        <Frame view={view} kind="total">
          <h1 class="lead">{state.intent_status === "" ? words().total : words().underWay}</h1>
          <FitText class="amount" text={amount} heightShare={0.34} />
          <p class="order">{orderLine}</p>
        </Frame>
      );
  }
}

/** The display may show no state: it has none yet, or its last one is too old or from before a block. */
function Nothing({ view }: ViewProps) {
  const isHidden = view.isStale && view.lastAnswerAtMs !== null;
  const help = isHidden ? words().staleHidden : words().connecting;
  return <Message view={view} kind={view.isStale ? "wait" : "connecting"} title={words().wait} help={help} />;
}

function Blocked({ view }: ViewProps) {
  const { blockedReason } = view;
  const texts = words().blocked;
  const sentence = (texts as Readonly<Record<string, unknown>>)[blockedReason];
  return (
    <Message view={view} kind="blocked" title={texts.title} help={texts.help}>
      <p class="reason">{typeof sentence === "string" ? sentence : texts.other(blockedReason)}</p>
    </Message>
  );
}

interface MessageProps extends ViewProps {
  readonly kind: string;
  readonly title: string;
  readonly help: string;
  readonly children?: ComponentChildren;
}

function Message({ view, kind, title, help, children }: MessageProps) {
  return (
    <Frame view={view} kind={kind}>
      <h1 class="lead">{title}</h1>
      {children}
      <p class="hint">{help}</p>
    </Frame>
  );
}

interface FrameProps extends ViewProps {
  readonly kind: string;
  readonly children: ComponentChildren;
}

function Frame({ view, kind, children }: FrameProps) {
  // A blocked display has an answer, so its problem is not the connection.
  const isStale = view.isStale && view.blockedReason === "";
  return (
    <div class={`frame frame-${kind}${isStale ? " frame-stale" : ""}`} data-screen={kind}>
      <div role="status">
        {isStale && (
          <p class="stale-bar">
            <strong>{words().stale}</strong> <span>{words().staleHelp}</span>
          </p>
        )}
      </div>
      <main class="content" aria-live="polite">
        {children}
      </main>
      <Footer view={view} />
    </div>
  );
}

/** The age of the shown state, measured on the monotonic clock. */
function Footer({ view: { lastAnswerAtMs, isStale } }: ViewProps) {
  if (lastAnswerAtMs === null) return <footer class="foot">{words().connecting}</footer>;
  return (
    <footer class="foot">
      <span class={isStale ? "dot" : "dot dot-fresh"} />
      {words().updated(ageText(performance.now() - lastAnswerAtMs))}
    </footer>
  );
}

function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return words().seconds(seconds);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? words().minutes(minutes) : words().hours(Math.floor(minutes / 60));
}

function Check() {
  return (
    <svg class="check" viewBox="0 0 24 24" aria-hidden="true">
      <circle cx="12" cy="12" r="11" />
      <path d="M7 12.5l3.4 3.4L17 9.2" />
    </svg>
  );
}
