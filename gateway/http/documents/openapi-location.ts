/** Where the document is checked in. */
export const OPENAPI_FILE = new URL("openapi.json", import.meta.url);
