/** Sentences of the contract that no check covers, each with its reason. */
export interface Exemption {
  /** The exemption applies to the sentences that contain this text. */
  readonly text: string;
  readonly reason: string;
}

const HEAD = "introduces what follows";
const ADVICE = "is advice for makers of devices and consumers, and the service cannot break it";
const WEBHOOKS =
  "is about the webhooks of robots, which no device of a sandbox takes part in; the project's own tests check it";
const OUTSIDE =
  "is visible in reconciliation only, and the suite acts as cashier, device and owner; the project's own tests check it";
const CERTIFICATES = "is about certificates, which this suite's run does not record; the project's own tests check it";
const PLATFORM =
  "needs the platform key, and the suite acts as cashier, device and owner; the project's own tests check it";
const ITSELF = "is about this suite; its exit codes 1 and 3 show it";

export const EXEMPT_SECTIONS: Readonly<Record<string, string>> = {
  "Webhook envelope": WEBHOOKS,
  "Webhook-related read and replay endpoints": WEBHOOKS,
  Events: WEBHOOKS,
  "Registration and target rules": WEBHOOKS,
  "Event types": WEBHOOKS,
  Payload: WEBHOOKS,
  Signature: WEBHOOKS,
  "Delivery semantics": WEBHOOKS,
};

export const EXEMPTIONS: readonly Exemption[] = [
  { text: "not shown", reason: "names what the contract leaves open" },
  { text: "This single document covers", reason: HEAD },
  { text: "Rules that hold for the whole service:", reason: HEAD },
  { text: "Rules:", reason: HEAD },
  { text: "Refusals of POST assignment/report:", reason: HEAD },
  { text: "Outcome meanings:", reason: HEAD },
  { text: "A separate optional channel delivers signed webhooks", reason: WEBHOOKS },
  { text: "Webhook authenticity is by signature", reason: WEBHOOKS },
  { text: "Webhook timestamp tolerance", reason: WEBHOOKS },
  { text: "The device passes a conformance suite;", reason: CERTIFICATES },
  { text: "Certification is per provider x capability", reason: CERTIFICATES },
  { text: "The conformance suite drives the API", reason: ITSELF },
  { text: "Money a provider asserts for a transaction that was never registered", reason: OUTSIDE },
  { text: "Reconciliation against an imported provider statement", reason: OUTSIDE },
  { text: "a companion only needs to poll between collections", reason: ADVICE },
  { text: "Poll around every two seconds.", reason: ADVICE },
  { text: "Polling cadence:", reason: ADVICE },
];

/** Parts of sentences that no check covers, although checks cover the rest. */
export const EXEMPT_PARTS: readonly Exemption[] = [
  { text: "cash keeps collecting through a platform freeze", reason: PLATFORM },
];
