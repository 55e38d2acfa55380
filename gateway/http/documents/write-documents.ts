/** Writes `openapi.json` and `asyncapi.json` beside this file: `npm run openapi`, after a change of the contract. */
import { writeFile } from "node:fs/promises";
import { ASYNCAPI_FILE, OPENAPI_FILE } from "../../api/meta/pages.ts";
import { routes } from "../../routes.ts";
import { asyncApiText } from "./asyncapi.ts";
import { buildDocument, documentText } from "./openapi.ts";

await writeFile(OPENAPI_FILE, documentText(buildDocument(routes)));
await writeFile(ASYNCAPI_FILE, asyncApiText());
