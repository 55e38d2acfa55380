/** Writes `docs/settings.md` and the example of an environment file: `npm run settings`, after a change of settings. */
import { writeFile } from "node:fs/promises";
import { settingsDocuments } from "./settings-documents.ts";

for (const { path, text } of await settingsDocuments()) await writeFile(path, text);
