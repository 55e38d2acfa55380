/** The merchant-presented payload of one payment (EMVCo QR Code Specification for Payment Systems, merchant-presented mode). */
import { formatAmount } from "../../../../machines/currency.ts";
import { crc16 } from "./crc16.ts";
import { currencyNumber } from "./currency-number.ts";
import type { MerchantData } from "./merchant-data.ts";
import { template, tlv } from "./tlv.ts";

/** The CRC's own id and length, which it covers. */
const CRC_PREFIX = "6304";

export interface PayloadPayment {
  readonly amountMinor: string;
  readonly currency: string;
  /** At most 25 characters. */
  readonly reference: string;
}

/** Throws `RangeError` for a currency without a number. */
export function merchantPayload(merchant: MerchantData, payment: PayloadPayment): string {
  const { amountMinor, currency, reference } = payment;
  const number = currencyNumber(currency);
  if (number === undefined) throw new RangeError(`The currency ${currency} has no number.`);
  const account = merchant.merchant_account;
  const objects = [
    tlv("00", "01"),
    // Dynamic: this code is for one payment.
    tlv("01", "12"),
    template(account.tag, [
      tlv("00", account.guid),
      tlv("01", account.merchant_id),
      ...(account.terminal_id === undefined ? [] : [tlv("02", account.terminal_id)]),
    ]),
    tlv("52", merchant.category_code),
    tlv("53", number),
    tlv("54", formatAmount(amountMinor, currency)),
    tlv("58", merchant.country),
    tlv("59", merchant.merchant_name),
    tlv("60", merchant.merchant_city),
    ...(merchant.postal_code === undefined ? [] : [tlv("61", merchant.postal_code)]),
    template("62", [tlv("05", reference)]),
  ];
  const payload = `${objects.join("")}${CRC_PREFIX}`;
  return `${payload}${crc16(payload)}`;
}
