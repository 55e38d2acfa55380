/** What the router and this page use and Chrome before 73 lacks. */
function fromEntries(entries: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, value] of entries) found[name] = value;
  return found;
}

const known: { readonly fromEntries?: unknown } = Object;
if (known.fromEntries === undefined) Object.assign(Object, { fromEntries });
