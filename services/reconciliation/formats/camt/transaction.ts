/** One transaction (`TxDtls`) of an entry, reduced to what a line needs as soon as it is read. */

import { isoInstant } from "../dates.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { cutTo } from "../records.ts";
import { type BankTransactionCode, bankTransactionCode } from "./bank-transaction-codes.ts";
import { elementsAt, textAt, type XmlElement } from "./element.ts";
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
  /** The bank's ids of it, the strongest first. */
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
    ...REFERENCES.map((name) => [name, referenceAt(element, `Refs/${name}`)] as const),
    ...elementsAt(element, "Refs/Prtry").map(
      (reference) => [`Refs/Prtry ${textAt(reference, "Tp")}`.trim(), textAt(reference, "Ref")] as const,
    ),
    ...PARTIES.map((name) => [name, partyAt(element, name)] as const),
    ["DbtrAcct", textAt(element, "RltdPties/DbtrAcct/Id/IBAN", "RltdPties/DbtrAcct/Id/Othr/Id")] as const,
    ["CdtrAcct", textAt(element, "RltdPties/CdtrAcct/Id/IBAN", "RltdPties/CdtrAcct/Id/Othr/Id")] as const,
    ["DbtrAgt", agentAt(element, "DbtrAgt")] as const,
    ["CdtrAgt", agentAt(element, "CdtrAgt")] as const,
    ["Purp", textAt(element, "Purp/Cd", "Purp/Prtry")] as const,
    ["RtrInf", textAt(element, "RtrInf/Rsn/Cd", "RtrInf/Rsn/Prtry")] as const,
    ...elementsAt(element, "RtrInf/AddtlInf").map(({ text }) => ["RtrInf/AddtlInf", text.trim()] as const),
    ...elementsAt(element, "RmtInf/Strd").flatMap((remittance) => [
      ["CdtrRefInf", textAt(remittance, "CdtrRefInf/Ref", "CdtrRefInf/CdtrRef")] as const,
      ["RfrdDocInf", textAt(remittance, "RfrdDocInf/Nb")] as const,
      ["AddtlRmtInf", textAt(remittance, "AddtlRmtInf")] as const,
    ]),
    ...amountDetailsOf(element),
    ["AddtlTxInf", textAt(element, "AddtlTxInf")] as const,
  ].filter(([, value]) => value !== "");
  return details
    .slice(0, FORMAT_LIMITS.detailFields)
    .map(([name, value]) => [name, cutTo(FORMAT_LIMITS.detailCharacters, value)]);
}

/** The amounts that led to the one booked, and the charges, as the statement writes them. */
export function amountDetailsOf(element: XmlElement): Details {
  return [
    ...["InstdAmt", "TxAmt", "CntrValAmt", "AnncdPstngAmt"].flatMap((name) =>
      elementsAt(element, `AmtDtls/${name}/Amt`).map(
        ({ text, currency = "" }) => [name, `${text.trim()} ${currency}`] as const,
      ),
    ),
    ...["InstdAmt", "TxAmt", "CntrValAmt"].map(
      (name) => [`${name}/XchgRate`, textAt(element, `AmtDtls/${name}/CcyXchg/XchgRate`)] as const,
    ),
    ...chargesOf(element).map(({ words }) => ["Chrgs", words] as const),
  ];
}

/** Since version 08 a party is a `Pty` or an agent; before, it was the party itself. */
function partyAt(element: XmlElement, name: string): string {
  const party = `RltdPties/${name}`;
  return textAt(
    element,
    `${party}/Pty/Nm`,
    `${party}/Nm`,
    `${party}/Agt/FinInstnId/Nm`,
    `${party}/Agt/FinInstnId/BICFI`,
  );
}

function agentAt(element: XmlElement, name: string): string {
  const agent = `RltdAgts/${name}/FinInstnId`;
  return textAt(element, `${agent}/BICFI`, `${agent}/BIC`, `${agent}/ClrSysMmbId/MmbId`, `${agent}/Nm`);
}
