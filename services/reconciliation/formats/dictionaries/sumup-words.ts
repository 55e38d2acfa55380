/**
 * The words of SumUp's transaction report, in its languages. Words are compared in lower case; an unknown word makes
 * its row malformed, so that a new word is never confused with a known one.
 */

export type SumupType = "Sale" | "Payout" | "Refund" | "Chargeback";
export type SumupOutcome = "done" | "planned" | "pending" | "cancelled" | "failed" | "refunded" | "offset";

/** A line's type is SumUp's English word, so that the same file in another language gives the same lines. */
export const SUMUP_TYPES = {
  Sale: "umsatz|zahlung|verkauf|sale|payment|vente|paiement|encaissement|vendita|pagamento|incasso".split("|"),
  Payout: "auszahlung|payout|versement|virement|reversement|accredito|versamento|bonifico".split("|"),
  Refund: [
    ..."rückerstattung|erstattung|rückzahlung|refund|remboursement|rimborso".split("|"),
    ..."erstattet|rückerstattet|zurückerstattet|refunded|remboursé|remboursée|rimborsato|rimborsata".split("|"),
  ],
  Chargeback:
    "rückbuchung|rückbelastung|rücklastschrift|chargeback|charge back|rétrofacturation|storno di addebito".split("|"),
} as const satisfies Record<SumupType, readonly string[]>;

export const SUMUP_OUTCOMES = {
  done: [
    ..."erfolgreich|gezahlt|bezahlt|ausgezahlt|abgeschlossen".split("|"),
    ..."successful|success|accepted|paid|paid out|completed".split("|"),
    ..."réussi|réussie|accepté|acceptée|effectué|effectuée|payé|payée|versé|versée|terminé|terminée".split("|"),
    ..."riuscito|riuscita|effettuato|effettuata|pagato|pagata|accreditato|accreditata|completato|completata".split("|"),
  ],
  planned: [
    ..."geplant|vorgesehen|scheduled|planned|planifié|planifiée|programmé|programmée|prévu|prévue".split("|"),
    ..."programmato|programmata|pianificato|pianificata|previsto|prevista".split("|"),
  ],
  pending: "ausstehend|in bearbeitung|pending|in progress|en attente|en cours|in sospeso|in attesa|in corso".split("|"),
  cancelled: "abgebrochen|storniert|cancelled|canceled|annulé|annulée|annullato|annullata".split("|"),
  failed: "fehlgeschlagen|failed|échoué|échouée|échec|fallito|fallita|non riuscito|non riuscita".split("|"),
  /** The share of a payout was used up by a refund of its sale, and was not paid out. */
  offset: ["refund adjustment"],
  /** Money that has moved and was given back later, in full or in part, or was disputed. */
  refunded: [
    ..."erstattet|rückerstattet|zurückerstattet|teilweise erstattet|teilweise rückerstattet|rückbelastet".split("|"),
    ..."refunded|partially refunded|charged back|chargeback".split("|"),
    ..."remboursé|remboursée|partiellement remboursé|partiellement remboursée".split("|"),
    ..."rimborsato|rimborsata|parzialmente rimborsato|parzialmente rimborsata".split("|"),
  ],
} as const satisfies Record<SumupOutcome, readonly string[]>;

/** Payment methods that are cash; any other one is the provider's money. */
export const SUMUP_CASH: ReadonlySet<string> = new Set(
  "cash|bar|bargeld|barzahlung|espèces|en espèces|contanti|in contanti".split("|"),
);
