/** One transaction (`TxDtls`) of an entry, reduced to what a line needs as soon as it is read. */

import { isoInstant } from "../dates.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { cutTo } from "../records.ts";
import { type BankTransactionCode, bankTransactionCode } from "./bank-transaction-codes.ts";
import { elementAt, elementsAt, textAt, type XmlElement } from "./element.ts";
import { type Charge, chargesOf, type Money, moneyAt } from "./money.ts";

export type Details = readonly (readonly [name: string, value: string])[];

export interface Transaction {
  /** The amount booked for it: `Amt` since version 04, `AmtDtls` in version 02. Undefined where it has none. */
  readonly amount: Money | undefined;
  /** `AmtDtls/TxAmt`: before the charges. */
  readonly gross: Money | undefined;
  /** "" where it is the entry's. */
  readonly indicator: string;
  readonly charges: readonly Charge[];
  readonly code: BankTransactionCode;
  /** The bank's ids of the transaction, the most specific first. */
  readonly bankReferences: readonly string[];
  readonly endToEndId: string;
  /** The references of a creditor that the payer repeated: `RmtInf/Strd`. */
  readonly creditorReferences: readonly string[];
  readonly text: string;
  readonly terminal: string;
  readonly occurredAt: string | undefined;
  readonly details: Details;
}

/** What banks write where they have no reference. */
const NO_REFERENCE = new Set(["NOTPROVIDED", "NOT PROVIDED", "NONREF", "NOTAVAILABLE", "N/A"]);

export function referenceAt(element: XmlElement, ...paths: readonly string[]): string {
  for (const path of paths) {
    const text = textAt(element, path);
    if (text !== "" && !NO_REFERENCE.has(text.toUpperCase())) return text;
  }
  return "";
}

export function transactionOf(element: XmlElement): Transaction {
  const gross = moneyAt(element, "AmtDtls/TxAmt/Amt");
  return {
    amount: moneyAt(element, "Amt") ?? gross ?? moneyAt(element, "AmtDtls/InstdAmt/Amt"),
    gross,
    indicator: textAt(element, "CdtDbtInd"),
    charges: chargesOf(element),
    code: bankTransactionCode(element),
    bankReferences: ["AcctSvcrRef", "TxId", "UETR", "ClrSysRef"]
      .map((name) => referenceAt(element, `Refs/${name}`))
      .filter((reference) => reference !== ""),
    endToEndId: referenceAt(element, "Refs/EndToEndId"),
    creditorReferences: elementsAt(element, "RmtInf/Strd")
      .map((remittance) => referenceAt(remittance, "CdtrRefInf/Ref", "CdtrRefInf/CdtrRef"))
      .filter((reference) => reference !== ""),
    text: textOf(element),
    terminal: textAt(element, "CardTx/POI/Id/Id", "CardTx/POI/SysNm"),
    occurredAt: isoInstant(textAt(element, "RltdDts/TxDtTm")) ?? isoInstant(textAt(element, "RltdDts/AccptncDtTm")),
    details: detailsOf(element),
  };
}

/** The payer's text, else the bank's. */
function textOf(element: XmlElement): string {
  const lines = elementsAt(element, "RmtInf/Ustrd").map(({ text }) => text.trim());
  const text = lines.filter((line) => line !== "").join("\n");
  return cutTo(FORMAT_LIMITS.textCharacters, text === "" ? textAt(element, "AddtlTxInf") : text);
}

const REFERENCES = [
  "MsgId",
  "PmtInfId",
  "InstrId",
  "EndToEndId",
  "TxId",
  "UETR",
  "AcctSvcrRef",
  "MndtId",
  "ChqNb",
  "ClrSysRef",
];
const PARTIES = ["Dbtr", "UltmtDbtr", "Cdtr", "UltmtCdtr"];

function detailsOf(element: XmlElement): Details {
  const details = [
    ...within(element, "Refs", referenceDetails),
    ...within(element, "RltdPties", partyDetails),
    ...within(element, "RltdAgts", agentDetails),
    ["Purp", textAt(element, "Purp/Cd", "Purp/Prtry")] as const,
    ...within(element, "RtrInf", returnDetails),
    ...elementsAt(element, "RmtInf/Strd").flatMap(remittanceDetails),
    ...amountDetailsOf(element),
    ["AddtlTxInf", textAt(element, "AddtlTxInf")] as const,
  ].filter(([, value]) => value !== "");
  return details
    .slice(0, FORMAT_LIMITS.detailFields)
    .map(([name, value]) => [name, cutTo(FORMAT_LIMITS.detailCharacters, value)]);
}

/** Most parts are missing in most transactions. */
function within(element: XmlElement, name: string, read: (part: XmlElement) => Details): Details {
  const part = elementAt(element, name);
  return part === undefined ? [] : read(part);
}

function referenceDetails(references: XmlElement): Details {
  const proprietary = elementsAt(references, "Prtry").map(
    (reference) => [`Refs/Prtry ${textAt(reference, "Tp")}`.trim(), textAt(reference, "Ref")] as const,
  );
  return [...REFERENCES.map((name) => [name, referenceAt(references, name)] as const), ...proprietary];
}

/** Since version 08 a party is a `Pty` or an agent; before, it was the party itself. */
function partyDetails(parties: XmlElement): Details {
  const names = PARTIES.map(
    (name) =>
      [
        name,
        textAt(parties, `${name}/Pty/Nm`, `${name}/Nm`, `${name}/Agt/FinInstnId/Nm`, `${name}/Agt/FinInstnId/BICFI`),
      ] as const,
  );
  const accounts = ["DbtrAcct", "CdtrAcct"].map(
    (name) => [name, textAt(parties, `${name}/Id/IBAN`, `${name}/Id/Othr/Id`)] as const,
  );
  return [...names, ...accounts];
}

function agentDetails(agents: XmlElement): Details {
  return ["DbtrAgt", "CdtrAgt"].map((name) => {
    const agent = `${name}/FinInstnId`;
    return [
      name,
      textAt(agents, `${agent}/BICFI`, `${agent}/BIC`, `${agent}/ClrSysMmbId/MmbId`, `${agent}/Nm`),
    ] as const;
  });
}

function returnDetails(information: XmlElement): Details {
  const further = elementsAt(information, "AddtlInf").map(({ text }) => ["RtrInf/AddtlInf", text.trim()] as const);
  return [["RtrInf", textAt(information, "Rsn/Cd", "Rsn/Prtry")], ...further];
}

function remittanceDetails(remittance: XmlElement): Details {
  return [
    ["CdtrRefInf", textAt(remittance, "CdtrRefInf/Ref", "CdtrRefInf/CdtrRef")],
    ["RfrdDocInf", textAt(remittance, "RfrdDocInf/Nb")],
    ["AddtlRmtInf", textAt(remittance, "AddtlRmtInf")],
  ];
}

/** The amounts that led to the one booked, and the charges, as the statement writes them. */
export function amountDetailsOf(element: XmlElement): Details {
  return [
    ...within(element, "AmtDtls", ({ children }) => children.flatMap(amountDetails)),
    ...chargesOf(element).map(({ words }) => ["Chrgs", words] as const),
  ];
}

function amountDetails(amount: XmlElement): Details {
  const { text = "", currency = "" } = elementAt(amount, "Amt") ?? {};
  return [
    [amount.name, `${text.trim()} ${currency}`.trim()],
    [`${amount.name}/XchgRate`, textAt(amount, "CcyXchg/XchgRate")],
  ];
}
