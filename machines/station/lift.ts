/** What older machine versions wrote, in the shape of the current one. One function per version. */
import type { Attestation, PaymentIntent } from "../payment-intent.ts";
import type { WireCommit } from "./commit.ts";
import type { AttestationRow, IntentRow } from "./rows.ts";

type AttestationFrom1 = Omit<Attestation, "by">;
type IntentFrom1 = Omit<PaymentIntent, "provider" | "endReason" | "attestation"> & {
  readonly attestation: AttestationFrom1 | null;
};

/** Version 1 knew no providers: no station had one, every settlement was attested by a cashier, nothing was in doubt, and one order at most was open. */
export function liftFrom1(written: WireCommit): WireCommit {
  const { state } = written;
  return {
    ...written,
    state: {
      ...state,
      provider: { configId: null, revision: 0 },
      doubts: [],
      waitingOrders: [],
      intent: state.intent === null ? null : liftIntent(state.intent),
      ended: state.ended.map(liftRow),
    },
  };
}

/**
 * An intent as any version wrote it, for what is kept outside of commits: the audit copy keeps an intent as it was when
 * it ended.
 */
export function liftIntent(intent: IntentFrom1 | PaymentIntent): PaymentIntent {
  const { attestation } = intent;
  const lifted = { provider: null, endReason: "", ...intent } as const;
  return { ...lifted, attestation: attestation === null ? null : { by: "cashier", ...attestation } };
}

function liftRow(row: IntentRow): IntentRow {
  const [attestation, endedAfterMs, status] = row.slice(16) as unknown as [
    AttestationRow | null,
    IntentRow[17],
    IntentRow[18],
  ];
  const by = 0;
  const lifted = attestation === null ? null : [...attestation, by];
  return [...row.slice(0, 16), lifted, endedAfterMs, status, null, null] as unknown as IntentRow;
}
