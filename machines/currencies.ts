/** The currencies of the service and their decimals. Nothing else is here, so that pages can use the same table. */

/** ISO 4217 exponents that differ from two. `Intl` gives cash-rounding exponents for some of these, so we keep a table. */
const EXPONENTS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    BIF: 0,
    CLP: 0,
    DJF: 0,
    GNF: 0,
    ISK: 0,
    JPY: 0,
    KMF: 0,
    KRW: 0,
    PYG: 0,
    RWF: 0,
    UGX: 0,
    UYI: 0,
    VND: 0,
    VUV: 0,
    XAF: 0,
    XOF: 0,
    XPF: 0,
    BHD: 3,
    IQD: 3,
    JOD: 3,
    KWD: 3,
    LYD: 3,
    OMR: 3,
    TND: 3,
  }),
);

/** The active ISO 4217 codes with two decimals. A code in neither table is not a currency here. */
const TWO_DECIMALS = new Set(
  (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE " +
    "CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR " +
    "KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB " +
    "PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY " +
    "TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG"
  ).split(" "),
);

/** How many decimals a currency has, or undefined when the code is not an ISO 4217 currency. */
export function currencyExponent(currency: string): number | undefined {
  return EXPONENTS.get(currency) ?? (TWO_DECIMALS.has(currency) ? 2 : undefined);
}
