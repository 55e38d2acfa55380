/**
 * The name under which the browser stores the display's credential; its lock has the same name. The frame of `/start/` is a
 * second display, separate from the display that this browser may already be.
 */
export const FIRST_MINUTE = "first-minute";
export const displayName = (): string => (location.search === `?${FIRST_MINUTE}` ? FIRST_MINUTE : "device-kit");

/** The code in the address, as the back office's QR code has it: `/display/#code=7K3QX-9M2TB`. */
const CODE = /^#code=([\w-]{1,32})$/;

/**
 * Reads the code and removes it from the address bar and the history. A browser never sends a fragment to a server, so no log
 * contains the code. A paired display keeps the code for the case that its credential has ended.
 */
export function takeCode(): string | undefined {
  const code = CODE.exec(location.hash)?.[1];
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  return code;
}
