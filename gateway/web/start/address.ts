/** The token of the one-time link that a start prints: `/start/#dpl_…`. */
const TOKEN = /^#(dpl_[\w-]{1,190})$/;

/** Reads the token and removes it from the address bar and the history. A fragment is never sent to a server. */
export function takeToken(): string | undefined {
  const token = TOKEN.exec(location.hash)?.[1];
  if (location.hash !== "") history.replaceState(null, "", location.pathname);
  return token;
}
