/**
 * The merchant-presented payload of one payment (EMVCo QR Code Specification for Payment Systems, merchant-presented
 * mode), and the merchant data that an owner gives for it. Lengths are those of the specification.
 */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";

/** The id and length of the CRC's object, which the CRC covers. */
const CRC_PREFIX = "6304";

interface PayloadPayment {
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

/** Printable ASCII without a space at the start or the end: every wallet reads it the same way. */
const printableText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, "only printable ASCII, without spaces at the ends");

export const merchantDataSchema = z.strictObject({
  /** Merchant account information: a template of 26 to 51, which names its scheme by a globally unique id. */
  merchant_account: z.strictObject({
    tag: z.string().regex(/^(?:2[6-9]|3\d|4\d|5[01])$/, "26 to 51"),
    guid: printableText(32),
    merchant_id: printableText(35),
    terminal_id: printableText(8).optional(),
  }),
  /** ISO 18245, for example 5812 for a restaurant. */
  category_code: z.string().regex(/^\d{4}$/, "four digits"),
  country: z.string().regex(/^[A-Z]{2}$/, "two capital letters"),
  merchant_name: printableText(25),
  merchant_city: printableText(15),
  postal_code: printableText(10).optional(),
});
export type MerchantData = z.infer<typeof merchantDataSchema>;

/** The most characters of a value, because its length is written with two digits. */
const TLV_VALUE_CHARACTERS = 99;

const ID = /^\d{2}$/;
/** In printable ASCII a character is one byte, so every reader counts the same length. */
const VALUE = /^[\x20-\x7e]*$/;

/** Writes one data object. Throws `RangeError` for an id or a value that the format does not allow. */
export function tlv(id: string, value: string): string {
  if (!ID.test(id)) throw new RangeError(`"${id}" is no id of a data object.`);
  if (value.length === 0 || value.length > TLV_VALUE_CHARACTERS) {
    throw new RangeError(
      `The data object ${id} has ${value.length} characters; it may have 1 to ${TLV_VALUE_CHARACTERS}.`,
    );
  }
  if (!VALUE.test(value)) throw new RangeError(`The data object ${id} holds a character that is not printable ASCII.`);
  return `${id}${String(value.length).padStart(2, "0")}${value}`;
}

/** A data object that consists of data objects. */
function template(id: string, objects: readonly string[]): string {
  return tlv(id, objects.join(""));
}

/** CRC-16/CCITT-FALSE, as EMVCo specifies it: polynomial 0x1021, initial value 0xFFFF, no reflection. */
const POLYNOMIAL = 0x1021;

/** Four upper-case hexadecimal digits over a text of ASCII characters. */
export function crc16(text: string): string {
  let crc = 0xffff;
  for (const byte of Buffer.from(text, "latin1")) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
    }
    crc &= 0xffff;
  }
  return crc.toString(16).toUpperCase().padStart(4, "0");
}

const NUMERIC_CODES: ReadonlyMap<string, string> = new Map(
  (
    "AED:784 AFN:971 ALL:008 AMD:051 AOA:973 ARS:032 AUD:036 AWG:533 AZN:944 BAM:977 BBD:052 BDT:050 " +
    "BHD:048 BIF:108 BMD:060 BND:096 BOB:068 BRL:986 BSD:044 BTN:064 BWP:072 BYN:933 BZD:084 CAD:124 " +
    "CDF:976 CHF:756 CLP:152 CNY:156 COP:170 CRC:188 CUP:192 CVE:132 CZK:203 DJF:262 DKK:208 DOP:214 " +
    "DZD:012 EGP:818 ERN:232 ETB:230 EUR:978 FJD:242 FKP:238 GBP:826 GEL:981 GHS:936 GIP:292 GMD:270 " +
    "GNF:324 GTQ:320 GYD:328 HKD:344 HNL:340 HTG:332 HUF:348 IDR:360 ILS:376 INR:356 IQD:368 IRR:364 " +
    "ISK:352 JMD:388 JOD:400 JPY:392 KES:404 KGS:417 KHR:116 KMF:174 KPW:408 KRW:410 KWD:414 KYD:136 " +
    "KZT:398 LAK:418 LBP:422 LKR:144 LRD:430 LSL:426 LYD:434 MAD:504 MDL:498 MGA:969 MKD:807 MMK:104 " +
    "MNT:496 MOP:446 MRU:929 MUR:480 MVR:462 MWK:454 MXN:484 MYR:458 MZN:943 NAD:516 NGN:566 NIO:558 " +
    "NOK:578 NPR:524 NZD:554 OMR:512 PAB:590 PEN:604 PGK:598 PHP:608 PKR:586 PLN:985 PYG:600 QAR:634 " +
    "RON:946 RSD:941 RUB:643 RWF:646 SAR:682 SBD:090 SCR:690 SDG:938 SEK:752 SGD:702 SHP:654 SLE:925 " +
    "SOS:706 SRD:968 SSP:728 STN:930 SVC:222 SYP:760 SZL:748 THB:764 TJS:972 TMT:934 TND:788 TOP:776 " +
    "TRY:949 TTD:780 TWD:901 TZS:834 UAH:980 UGX:800 USD:840 UYI:940 UYU:858 UZS:860 VED:926 VES:928 " +
    "VND:704 VUV:548 WST:882 XAF:950 XCD:951 XCG:532 XOF:952 XPF:953 YER:886 ZAR:710 ZMW:967 ZWG:924"
  )
    .split(" ")
    .map((entry): [string, string] => [entry.slice(0, 3), entry.slice(4)]),
);

/** Three digits, or undefined when the table does not have the currency. */
export function currencyNumber(currency: string): string | undefined {
  return NUMERIC_CODES.get(currency);
}
