/** Where the AsyncAPI document is checked in. */
export const ASYNCAPI_FILE = new URL("asyncapi.json", import.meta.url);
