/** Who is signed in, and which station this tab shows. */
import { signal } from "@preact/signals";
import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { followSignIns, keepOnePerson } from "../shared/one-person.ts";
import type { ReplyOf } from "../shared/operations.ts";
import { isSigningOut } from "../shared/session-ended.tsx";
import { toastFailure } from "../shared/toasts.tsx";
import { readAgain } from "../shared/use-load.ts";

type Session = ReplyOf<"GET /api/cashier/v1/session/">;
export type Station = ReplyOf<"GET /api/cashier/v1/stations/">["stations"][number];

/** Undefined until the first answer; null without a session. */
export const session = signal<Session | null | undefined>(undefined);
export const sessionFailure = signal<Failure | null>(null);
/** Counts how often the same person has signed in again after a session ended. */
export const returns = signal(0);

const STORED_STATION = "dp_till_station";

/** `/till/?station=2` opens that station. The page removes it from the address, so that a reload keeps a later choice. */
function stationInAddress(): number | null {
  const asked = Number(new URLSearchParams(location.search).get("station"));
  if (!Number.isSafeInteger(asked) || asked < 1) return null;
  history.replaceState(null, "", location.pathname);
  sessionStorage.setItem(STORED_STATION, String(asked));
  return asked;
}

/** The station of this tab; a reload keeps it. */
export const stationId = signal<number | null>(
  stationInAddress() ?? (Number(sessionStorage.getItem(STORED_STATION)) || null),
);

export function chooseStation(id: number | null): void {
  stationId.value = id;
  if (id === null) sessionStorage.removeItem(STORED_STATION);
  else sessionStorage.setItem(STORED_STATION, String(id));
}

export async function loadSession(): Promise<void> {
  const result = await call("GET /api/cashier/v1/session/");
  sessionFailure.value = result.ok || result.httpStatus === 401 ? null : result;
  if (result.ok) begin(result.reply);
  else if (result.httpStatus === 401 || result.code === "permission_denied") session.value = null;
}

export async function signIn(email: string, password: string): Promise<Failure | null> {
  const result = await call("POST /api/cashier/v1/session/", { body: { email, password } });
  if (!result.ok) return result;
  const { user, expires_at } = result.reply;
  continueAs({ user, expires_at });
  return null;
}

followSignIns("cashier", async () => {
  const result = await call("GET /api/cashier/v1/session/");
  if (result.ok) continueAs(result.reply);
});

function continueAs(found: Session): void {
  const before = session.peek();
  begin(found);
  if (!before) return;
  if (before.user.user_id === found.user.user_id) returns.value += 1;
  // For another cashier the page starts again without the previous cashier's data.
  else location.reload();
  readAgain();
}

function begin(found: Session): void {
  session.value = found;
  keepOnePerson(found.user.user_id);
}

/** The service also releases the station that the session drives. The page reloads and discards all data, also unsent lines. */
export async function signOut(): Promise<void> {
  isSigningOut.value = true;
  const result = await call("DELETE /api/cashier/v1/session/");
  if (!result.ok && result.httpStatus !== 401) {
    isSigningOut.value = false;
    return toastFailure(result);
  }
  chooseStation(null);
  location.reload();
}
