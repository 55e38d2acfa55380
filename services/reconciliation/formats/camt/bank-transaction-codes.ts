/** What the bank says an entry is: ISO 20022 "Bank Transaction Codes" of domain, family and sub-family, or the bank's own code. */
import type { LineKind } from "../format.ts";
import { textAt, type XmlElement } from "./element.ts";

export interface BankTransactionCode {
  /** "PMNT/RCDT/ESCT", else the bank's own code, else "". */
  readonly code: string;
  readonly subFamily: string;
  readonly domain: string;
  /** The bank's own code beside it. */
  readonly proprietary: string;
}

/** Sub-families that exist in each family and always mean a charge of the bank. */
const CHARGES = new Set(["CHRG", "COME", "COMI", "COMM", "COMT", "FEES"]);
/** Of the family of merchant cards: the card's holder or bank took the payment back. */
const UNPAID_CARD = "PMNT/MCRD/UPCT";

export function bankTransactionCode(element: XmlElement): BankTransactionCode {
  const domain = textAt(element, "BkTxCd/Domn/Cd");
  const family = textAt(element, "BkTxCd/Domn/Fmly/Cd");
  const subFamily = textAt(element, "BkTxCd/Domn/Fmly/SubFmlyCd");
  const proprietary = textAt(element, "BkTxCd/Prtry/Cd");
  const code = [domain, family, subFamily].filter((part) => part !== "").join("/");
  return { code: code === "" ? proprietary : code, subFamily, domain, proprietary: code === "" ? "" : proprietary };
}

/** A kind of its own only where the code leaves no doubt; most codes say how money moved and not why. */
export function kindOf({ code, domain, subFamily }: BankTransactionCode, amountMinor: bigint): LineKind {
  if (CHARGES.has(subFamily)) return "fee";
  if (code === UNPAID_CARD && amountMinor < 0n) return "chargeback";
  if (domain === "FORX") return "conversion";
  return amountMinor < 0n ? "bank_debit" : "bank_credit";
}
