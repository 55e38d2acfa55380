/** The statement of the sandbox provider (docs/sandbox.md, "The statement"): one language, one generation. */
import type { HeaderDictionary } from "../csv/dictionary.ts";

const COLUMNS = ["line", "payment_id", "reference", "account", "amount", "currency", "paid_at"] as const;
export type SandboxField = (typeof COLUMNS)[number];

export const SANDBOX_COLUMNS: HeaderDictionary<SandboxField> = {
  report: "the sandbox provider's statement",
  version: 1,
  entries: [
    {
      name: "2026",
      columns: {
        line: ["line"],
        payment_id: ["payment_id"],
        reference: ["reference"],
        account: ["account"],
        amount: ["amount"],
        currency: ["currency"],
        paid_at: ["paid_at"],
      },
      required: COLUMNS,
    },
  ],
};
