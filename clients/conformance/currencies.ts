/** Currencies in which the suite cannot order: its amounts have two decimals, as those of the contract. */

const NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND";
const OTHERS = new Set(`${NO_DECIMALS} ${THREE_DECIMALS}`.split(" "));

/** Whether an ISO 4217 currency has two decimals. */
export const hasTwoDecimals = (currency: string): boolean => !OTHERS.has(currency);
