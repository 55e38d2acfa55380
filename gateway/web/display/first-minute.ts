/**
 * The display in the frame of `/start/`. All tabs of one browser share one display; each other browser has another one. A tab
 * pairs it only when its credential has ended, because a pairing ends the previous credential. The other tabs wait meanwhile.
 */
import { createDeviceClient } from "../../../clients/device-kit/client.ts";
import { hostPlatform } from "../../../clients/device-kit/platform.ts";
import { type DeviceRecord, readRecord } from "../../../clients/device-kit/record.ts";
import { indexedDbStorage } from "../../../clients/device-kit/storage/indexed-db.ts";
import { createTransport } from "../../../clients/device-kit/transport.ts";
import { FIRST_MINUTE } from "./address.ts";

const ADDRESS = `/display/?${FIRST_MINUTE}`;
const LOCK = "pairing first-minute";
/** How long to wait until the frame has claimed its code. A browser that stores nothing never has a credential. */
const PAIRING_MS = 10_000;
const CHECK_MS = 200;
/** How many browsers have a display at the same time; a further browser takes over a display. A station has 16 devices. */
const MOST_DISPLAYS = 4;

interface OwnDisplay {
  readonly displayId: number;
  /** A browser shows it now. */
  readonly isOnline: boolean;
}

interface Station {
  /** The station's displays of this kind. */
  readonly findDisplays: () => Promise<readonly OwnDisplay[]>;
  /** A code for this display; without an id, for a new display that it registers. */
  readonly newCode: (displayId: number | undefined) => Promise<string>;
}

/** The address of the frame. It contains a new code when this browser has no valid credential. */
export function frameAddress({ findDisplays, newCode }: Station): Promise<string> {
  return new Promise((resolve, reject) => {
    const open = async (): Promise<void> => {
      const [displays, before] = [await findDisplays(), await storedRecord()];
      const isKnown = displays.some(({ displayId }) => displayId === before?.device_id);
      if (before !== null && isKnown && (await isAccepted(before))) return resolve(ADDRESS);
      const unused = displays.find(({ isOnline }) => !isOnline) ?? displays[MOST_DISPLAYS - 1];
      resolve(`${ADDRESS}#code=${await newCode(unused?.displayId)}`);
      await paired(before?.credential);
    };
    const opened = "locks" in navigator ? navigator.locks.request(LOCK, open) : open();
    opened.catch(reject);
  });
}

async function storedRecord(): Promise<DeviceRecord | null> {
  const text = await indexedDbStorage(window.indexedDB, FIRST_MINUTE)
    .read()
    .catch(() => null);
  const record = readRecord(text);
  return record === "damaged" ? null : record;
}

/** Without an answer the credential counts as accepted: the display itself asks again. */
async function isAccepted({ credential }: DeviceRecord): Promise<boolean> {
  const client = createDeviceClient(createTransport({ baseUrl: location.origin, platform: hostPlatform() }));
  client.use(credential);
  const answered = await client.me();
  return answered.ok || answered.failure.status !== 401;
}

async function paired(before: string | undefined): Promise<void> {
  for (let waitedMs = 0; waitedMs < PAIRING_MS; waitedMs += CHECK_MS) {
    const credential = (await storedRecord())?.credential ?? "";
    if (credential !== "" && credential !== before) return;
    await new Promise((resolve) => setTimeout(resolve, CHECK_MS));
  }
}
