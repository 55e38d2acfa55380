/** Functions that the oldest browsers lack. The router and this page need Chrome 73, the chart's library needs Safari 14. */
function fromEntries(entries: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, value] of entries) found[name] = value;
  return found;
}

const known: { readonly fromEntries?: unknown } = Object;
if (known.fromEntries === undefined) Object.assign(Object, { fromEntries });

type Listener = Parameters<MediaQueryList["addListener"]>[0];
const queries: Partial<Pick<MediaQueryList, "addEventListener">> = MediaQueryList.prototype;
if (queries.addEventListener === undefined) {
  Object.assign(queries, {
    addEventListener(this: MediaQueryList, _type: string, listener: Listener) {
      this.addListener(listener);
    },
    removeEventListener(this: MediaQueryList, _type: string, listener: Listener) {
      this.removeListener(listener);
    },
  });
}
