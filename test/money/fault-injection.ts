/** Faults while people work: processes that are killed, and kill switches that are set. */
import { setTimeout as delay } from "node:timers/promises";
import { moveDevice } from "../../services/bus/messages/devices.ts";
import { setKillSwitch, setPlatformKillSwitch } from "../../services/bus/messages/kill-switches.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import type { KillableProcess } from "./killable-process.ts";
import { type Filial, insist, type MoneyWorld } from "./money-world.ts";
import type { Freeze, Strike } from "./schedule.ts";

/** After this time, a strike kills its processes even if the moment for which it waits has not come. */
const MOMENT_WITHIN_MS = 3_000;

/** Kills processes and starts them again. Returns whether the moment for which it waited came. */
export async function strike(world: MoneyWorld, { kills, at, afterMs }: Strike): Promise<boolean> {
  await delay(afterMs);
  const processes = processesOf(world, kills);
  const isHit = await atTheMoment(world, at, () => Promise.all(processes.map((each) => each.kill9())));
  if (kills === "providers") await passClaims(world);
  await Promise.all(processes.map((each) => each.restart()));
  return isHit;
}

function processesOf({ hosts, providers }: MoneyWorld, kills: Strike["kills"]): readonly KillableProcess[] {
  const [first, second] = hosts;
  if (kills === "providers") return [providers];
  return kills === "both_hosts" ? hosts : [kills === "first_host" ? first : second];
}

async function atTheMoment(world: MoneyWorld, at: Strike["at"], kill: () => Promise<unknown>): Promise<boolean> {
  if (at === "once") {
    await kill();
    return false;
  }
  const struck = new AbortController();
  const killing: Promise<unknown>[] = [];
  const aim = (): void => {
    if (struck.signal.aborted) return;
    killing.push(kill());
    struck.abort();
  };
  const stopWatching = at === "settling" ? watchSettling(world, aim) : await watchConfirming(world, aim);
  await delay(MOMENT_WITHIN_MS, undefined, { signal: struck.signal }).catch(() => undefined);
  const isHit = struck.signal.aborted;
  aim();
  await stopWatching();
  await Promise.all(killing);
  return isHit;
}

/** Calls `onSettling` between the commit that settles and the commit of the seam's answer. */
function watchSettling(world: MoneyWorld, onSettling: () => void): () => Promise<void> {
  const stop = world.log.onCommit(({ active }) => {
    if (active?.status === "settling") onSettling();
  });
  return async () => stop();
}

/** Calls `onConfirmation` between the transaction that writes a confirmation and the command to the station. */
async function watchConfirming(world: MoneyWorld, onConfirmation: () => void): Promise<() => Promise<void>> {
  const listening = await world.database.listen("confirmation_written", onConfirmation);
  return () => listening.unlisten();
}

/** Makes PostgreSQL notify when the transaction of a confirmation commits. */
export async function reportConfirmations({ database }: MoneyWorld): Promise<void> {
  await database.unsafe(`
    create function notify_confirmation() returns trigger language plpgsql as $$
    begin
      perform pg_notify('confirmation_written', new.intent_id::text);
      return null;
    end $$;
    create trigger provider_tasks_notify after insert on provider_tasks
      for each row when (new.kind = 'confirm') execute function notify_confirmation();`);
}

/** Makes all open tasks due now. Otherwise the tasks of the killed process would be due only after its claim. */
async function passClaims({ database }: MoneyWorld): Promise<void> {
  await database`update provider_tasks set due_at = now() where done_at is null`;
  await database`
    update issues set attributed_since = attributed_since - interval '1 minute' where attribution is not null`;
}

/** Sets a kill switch or suspends a device, and undoes this later. */
export async function freeze(
  world: MoneyWorld,
  filials: readonly Filial[],
  { what, thawsFirst, filial: nth, afterMs, forMs }: Freeze,
): Promise<void> {
  const filial = filials[nth % filials.length];
  if (filial === undefined) return;
  await delay(afterMs);
  const set = (isOn: boolean): Promise<unknown> => insist(() => setFrozen(world, filial, what, isOn));
  if (thawsFirst) await set(false);
  await set(true);
  await delay(forMs);
  await set(false);
}

async function setFrozen(world: MoneyWorld, filial: Filial, what: Freeze["what"], isOn: boolean): Promise<unknown> {
  const { owner: caller, stationId, configId, companionId } = filial;
  const reason = "a drill";
  if (what === "platform") return await world.ask(setPlatformKillSwitch, { by: "operator", isOn, reason });
  if (what === "suspended_device") {
    const move = isOn ? "SUSPEND" : "RESUME";
    return await world.ask(moveDevice, { caller, deviceId: companionId, move }).catch(ignoreMoved);
  }
  const subject = {
    organization: { kind: "organization" },
    station: { kind: "station", id: stationId },
    provider: { kind: "provider", id: configId },
    device: { kind: "device", id: companionId },
  } as const;
  return await world.ask(setKillSwitch, { caller, subject: subject[what], isOn, reason });
}

/** Ignores that another freeze has already suspended or resumed the device. */
function ignoreMoved(error: unknown): void {
  if (!(error instanceof RefusedError && error.refusal.code === "conflict")) throw error;
}
