import type { Installation } from "../services/bus/installation.ts";
import { UNWATCHED } from "../services/runtime/disk-watch.ts";
import { DiskRoom } from "./disk-room.ts";
import { type LogPart, type LogSpec, logOf } from "./log-files.ts";
import type { Settings } from "./settings.ts";

/** What the steps of the application share. */
export interface ApplicationContext {
  settings: Settings;
  /** The folder of this checkout. */
  checkout: string;
  /** The variables that this process was started with. Services get them too, together with the addresses. */
  environment: NodeJS.ProcessEnv;
  /** The database was restored from a backup, and the bus may be newer. */
  isDatabaseRestored?: boolean;
  /** Prints one line for a person. */
  print: (line: string) => void;
  addresses: Addresses;
  /** Set by the step that watches the disk, the first of all. */
  room: DiskRoom;
  /** Set by the step that prepares database and bus. */
  installation?: Installation;
}

/** The context before any step has run. */
export function createContext(parts: Omit<ApplicationContext, "addresses" | "room">): ApplicationContext {
  return { ...parts, addresses: new Addresses(), room: new DiskRoom(UNWATCHED, parts.settings.dataDir) };
}

type AddressName = "nats" | "database" | "gateway" | "sandboxProvider";

/** The addresses of the running parts. The step that starts a part sets its address; later steps read it. */
class Addresses {
  readonly #known = new Map<AddressName, string>();

  set(name: AddressName, url: string): void {
    this.#known.set(name, url);
  }

  /** Throws when the step that starts it has not run: a mistake in the order of the steps. */
  get(name: AddressName): string {
    const url = this.#known.get(name);
    if (url === undefined) throw new Error(`The address of ${name} is read before it runs.`);
    return url;
  }
}

/** The log of one part, below the data folder. */
export function logFor(context: ApplicationContext, part: LogPart): LogSpec {
  return logOf(part, context.settings);
}
