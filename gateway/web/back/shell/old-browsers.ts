/** What the oldest browsers lack: Chrome before 73 for the router and this page, Safari before 14 for the chart's library. */
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
