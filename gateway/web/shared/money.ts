/** Amounts in a person's language. They are decimal strings and never become numbers. */
const AMOUNT = /^(-?)(\d+)(?:\.(\d+))?$/;

/**
 * `12.50`, `EUR` as `€12.50` or `12,50 €`. `Intl` formats the number 1 to give the pattern. The digits come from the string, so
 * an amount that is too large for a number is also exact.
 */
export function moneyIn(locale: string, amount: string, currency: string): string {
  const match = AMOUNT.exec(amount);
  if (match === null) return `${amount} ${currency}`;
  const [, sign = "", whole = "0", fraction = ""] = match;
  const digits = { minimumFractionDigits: fraction.length, maximumFractionDigits: fraction.length };
  const format = new Intl.NumberFormat(locale, { style: "currency", currency, ...digits });
  // Safari 12 has no `formatToParts`.
  if (!("formatToParts" in format)) return `${amount} ${currency}`;
  const parts = format.formatToParts(sign === "" ? 1 : -1);
  let isWritten = false;
  const written = parts.map(({ type, value }) => {
    if (type === "fraction") return fraction;
    if (type === "group") return "";
    if (type !== "integer") return value;
    if (isWritten) return "";
    isWritten = true;
    return groupDigits(whole.replace(/^0+(?=\d)/, ""), format);
  });
  return written.join("");
}

/** `9.80` as a person types it: `9,80` in German. Forms accept both. */
export function typedIn(locale: string, amount: string): string {
  const hasComma = new Intl.NumberFormat(locale, { minimumFractionDigits: 1 }).format(0.5).includes(",");
  return hasComma ? amount.replace(".", ",") : amount;
}

/** Digits in the language's groups: three by three from the right, in India two by two after the last three. */
function groupDigits(digits: string, format: Intl.NumberFormat): string {
  const parts = format.formatToParts(1_000_000_000);
  const sizes = parts.filter(({ type }) => type === "integer").map(({ value }) => value.length);
  const [others, last] = sizes.slice(-2);
  const separator = parts.find(({ type }) => type === "group")?.value ?? "";
  return digits.replace(new RegExp(`\\B(?=(\\d{${others}})*\\d{${last}}$)`, "g"), separator);
}
