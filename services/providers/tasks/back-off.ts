/** How long to wait before the next attempt: doubling, bounded, and jittered so that many do not come back at once. */
export function backOffMs(attempts: number, bounds: { readonly firstMs: number; readonly longestMs: number }): number {
  const doubled = bounds.firstMs * 2 ** Math.min(attempts - 1, 30);
  return Math.min(doubled, bounds.longestMs) * (0.8 + Math.random() * 0.4);
}
