/** How a bank classifies an entry: an ISO 20022 code of domain, family and sub-family, or a code of the bank. */
import type { LineKind } from "../format.ts";
import { textAt, type XmlElement } from "./element.ts";

export interface BankTransactionCode {
  /** The ISO code ("PMNT/RCDT/ESCT"), else the proprietary code, else "". */
  readonly code: string;
  readonly subFamily: string;
  readonly domain: string;
  /** The proprietary code, where the entry has an ISO code too; else "". */
  readonly proprietary: string;
}

/** Sub-families that every family has. They always mean a charge of the bank. */
const CHARGES = new Set(["CHRG", "COME", "COMI", "COMM", "COMT", "FEES"]);
/** A merchant's card payment that the cardholder or the cardholder's bank took back. */
const UNPAID_CARD = "PMNT/MCRD/UPCT";

export function bankTransactionCode(element: XmlElement): BankTransactionCode {
  const domain = textAt(element, "BkTxCd/Domn/Cd");
  const family = textAt(element, "BkTxCd/Domn/Fmly/Cd");
  const subFamily = textAt(element, "BkTxCd/Domn/Fmly/SubFmlyCd");
  const proprietary = textAt(element, "BkTxCd/Prtry/Cd");
  const code = [domain, family, subFamily].filter((part) => part !== "").join("/");
  return { code: code === "" ? proprietary : code, subFamily, domain, proprietary: code === "" ? "" : proprietary };
}

/** A specific kind only where the code is unambiguous. Most codes state how funds moved, not why. */
export function kindOf({ code, domain, subFamily }: BankTransactionCode, amountMinor: bigint): LineKind {
  if (CHARGES.has(subFamily)) return "fee";
  if (code === UNPAID_CARD && amountMinor < 0n) return "chargeback";
  if (domain === "FORX") return "conversion";
  return amountMinor < 0n ? "bank_debit" : "bank_credit";
}
