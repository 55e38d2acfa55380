/** Writes `openapi.json` and `asyncapi.json` beside this file: `npm run openapi`, after a change of the contract. */
import { writeFile } from "node:fs/promises";
import { routes } from "../../routes.ts";
import { asyncApiText } from "./asyncapi.ts";
import { ASYNCAPI_FILE } from "./asyncapi-location.ts";
import { buildDocument, documentText } from "./openapi.ts";
import { OPENAPI_FILE } from "./openapi-location.ts";

await writeFile(OPENAPI_FILE, documentText(buildDocument(routes)));
await writeFile(ASYNCAPI_FILE, asyncApiText());
