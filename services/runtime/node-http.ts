/**
 * Node's HTTP server. An `import` of `node:http` reads every export, and some exports load the HTTP client behind
 * `fetch`: that costs 25 ms of CPU at the start of each process.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");
