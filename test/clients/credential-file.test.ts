/** A device's credential survives a restart and is nobody else's to read. */
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadCredential, saveCredential } from "../../clients/device/attach.ts";
import { DeviceStopped } from "../../clients/device/transport.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const stored = { device_id: 7, credential: "dp_2a_secret" };
let folder: TemporaryFolder;

beforeEach(() => {
  folder = temporaryFolder("credential");
});
afterEach(() => folder.remove());

describe("the credential file", () => {
  it("is readable by its owner only, also below a folder that did not exist", async () => {
    const path = join(folder.path, "deep", "er", "companion.json");
    await saveCredential(path, stored);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await loadCredential(path)).toEqual(stored);
  });

  it("is closed again when it came back open, for example from a backup", async () => {
    const path = join(folder.path, "companion.json");
    await saveCredential(path, stored);
    chmodSync(path, 0o644);
    await loadCredential(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("is replaced as a whole and leaves nothing beside it", async () => {
    const path = join(folder.path, "companion.json");
    await saveCredential(path, stored);
    await saveCredential(path, { ...stored, credential: "dp_2a_newer" });
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ device_id: 7, credential: "dp_2a_newer" });
    expect(readdirSync(folder.path)).toEqual(["companion.json"]);
  });

  it("counts as not there when there is none, and is never half believed", async () => {
    const path = join(folder.path, "companion.json");
    expect(await loadCredential(path)).toBeUndefined();
    writeFileSync(path, '{"device_id": 7, "cred');
    await expect(loadCredential(path)).rejects.toThrow(DeviceStopped);
    await expect(loadCredential(path)).rejects.toThrow(/damaged; delete it and enroll again\.$/);
  });

  it.each(["", '{"device_id": 7, "cred', '{"device_id": "7"}', "\0\0\0"])(
    "counts as not there when it is damaged and there is another way in: %j",
    async (text) => {
      const path = join(folder.path, "companion.json");
      let damages = 0;
      const onDamaged = (): void => {
        damages += 1;
      };
      writeFileSync(path, text);
      expect(await loadCredential(path, onDamaged)).toBeUndefined();
      expect(damages).toBe(1);
      await saveCredential(path, stored);
      expect(await loadCredential(path, onDamaged)).toEqual(stored);
      expect(damages).toBe(1);
    },
  );

  it("that cannot be written is told in one sentence", async () => {
    const path = join(folder.path, "taken", "companion.json");
    writeFileSync(join(folder.path, "taken"), "");
    await expect(saveCredential(path, stored)).rejects.toThrow(/^The credential file .* cannot be written\.$/);
  });
});
