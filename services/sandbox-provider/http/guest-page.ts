/** What a guest sees who scans the QR: the amount, and three buttons. Whoever has the link may decide, as with a real one. */
import type { IncomingMessage } from "node:http";
import { formatAmount } from "../../../machines/currency.ts";
import { type Decision, decide } from "../decide.ts";
import type { SandboxDeps } from "../deps.ts";
import { findPayment, lockPayment, type PaymentRow } from "../sql/payments.ts";
import { ApiError, type Reply } from "./reply.ts";

const DECISIONS: ReadonlyMap<string, Decision> = new Map([
  ["approve", "paid"],
  ["decline", "declined"],
  ["cancel", "cancelled"],
]);

const SAID: Readonly<Record<PaymentRow["status"], string>> = {
  pending: "Waiting for you.",
  paid: "Paid. Thank you.",
  declined: "Declined.",
  cancelled: "Cancelled.",
  expired: "This code has expired.",
};

export async function showGuestPage(deps: SandboxDeps, paymentId: string): Promise<Reply> {
  const payment = await findPayment(deps.database, paymentId);
  if (payment === undefined) throw new ApiError(404, "payment_unknown", "There is no such payment.");
  return {
    status: 200,
    text: page(payment),
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      // Not `no-referrer`: the browser would call the origin of this page's own form null.
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
    },
  };
}

/**
 * Only this page's own form decides: somebody else's page that sends the form would approve without the guest's will.
 * `Origin` says whose page it was where the browser sends it, else `Sec-Fetch-Site`; with neither it is no browser's page.
 */
export function refuseForeignPage({ guestUrl }: SandboxDeps, { headers }: IncomingMessage): void {
  const { origin, host, "sec-fetch-site": site } = headers;
  const sender = origin === undefined ? undefined : URL.parse(origin);
  // What is asked directly, and what comes by way of the address that guests know it by.
  const isOwn =
    sender === undefined
      ? site === undefined || site === "same-origin" || site === "none"
      : sender !== null && (sender.host === host || sender.origin === new URL(guestUrl("")).origin);
  if (!isOwn) throw new ApiError(403, "foreign_page", "A payment is decided on its own page only.");
}

/** Decides once; a payment that has been decided stays as it is. */
export async function decideAsGuest(deps: SandboxDeps, paymentId: string, form: string): Promise<Reply> {
  const decision = DECISIONS.get(new URLSearchParams(form).get("decision") ?? "");
  if (decision === undefined) throw new ApiError(422, "invalid_request", "Decide to approve, decline or cancel.");
  await deps.database.begin(async (sql) => {
    const payment = await lockPayment(sql, paymentId);
    if (payment === undefined) throw new ApiError(404, "payment_unknown", "There is no such payment.");
    if (payment.status === "pending") await decide(sql, payment, decision);
  });
  return { status: 303, text: "", headers: { location: `/pay/${encodeURIComponent(paymentId)}` } };
}

function page(payment: PaymentRow): string {
  const amount = `${formatAmount(payment.amount_minor, payment.currency)} ${payment.currency}`;
  const buttons = [...DECISIONS.keys()]
    .map((name) => `<button name="decision" value="${name}">${name[0]?.toUpperCase()}${name.slice(1)}</button>`)
    .join("\n");
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox payment</title>
<style>body{font:1.2rem system-ui;max-width:24rem;margin:3rem auto;padding:0 1rem}strong{font-size:2rem}button{font:inherit;padding:.6rem 1rem}</style>
<h1>Sandbox payment</h1>
<p>${escaped(payment.description)}</p>
<p><strong>${escaped(amount)}</strong></p>
<p role="status">${SAID[payment.status]}</p>
${payment.status === "pending" ? `<form method="post">${buttons}</form>` : ""}
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}
