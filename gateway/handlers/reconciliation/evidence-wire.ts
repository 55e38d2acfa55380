import type { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import type { IssueEvidence } from "../../../services/bus/messages/providers.ts";
import type { issueEvidenceSchema } from "../../contract/issue.ts";

type EvidenceWire = z.infer<typeof issueEvidenceSchema>;
type Facts = NonNullable<IssueEvidence["asserted"]>;

/** What an issue stands on, as the wire writes it: decimal amounts, and null where there is nothing of a kind. */
export function evidenceWire(evidence: IssueEvidence): EvidenceWire {
  const { learnedFrom, asserted, said, registered, station, further = [] } = evidence;
  return {
    learned_from: learnedFrom ?? null,
    asserted: asserted === undefined ? null : factsWire(asserted),
    said: said ?? null,
    registered: registered ? { ...factsWire(registered), paid_reference: registered.paidReference } : null,
    station: station ?? null,
    further: further.map(({ at, learned_from, said: words, same_amount }) => ({
      at: new Date(at).toISOString(),
      learned_from,
      said: words,
      same_amount,
    })),
  };
}

function factsWire({ reference, providerReference, account, amountMinor, currency }: Facts) {
  const amount = amountMinor === null || currency === null ? null : formatAmount(amountMinor, currency);
  return { reference, provider_reference: providerReference, account, amount, currency };
}
