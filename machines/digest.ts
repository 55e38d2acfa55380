/** Short digests of longer texts, for a bounded state. */

/**
 * A digest of 53 bits (cyrb53). The state keeps few texts of one intent, so two equal digests are very unlikely. A client that
 * searches for two texts with one digest can only lose its own report or repetition.
 */
export function digestOf(content: string): string {
  let low = 0xdeadbeef;
  let high = 0x41c6ce57;
  for (let at = 0; at < content.length; at += 1) {
    const unit = content.charCodeAt(at);
    low = Math.imul(low ^ unit, 2_654_435_761);
    high = Math.imul(high ^ unit, 1_597_334_677);
  }
  const mixedLow = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  const mixedHigh =
    Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(mixedLow ^ (mixedLow >>> 13), 3_266_489_909);
  return ((mixedHigh & 0x1fffff) * 0x100000000 + (mixedLow >>> 0)).toString(36);
}
