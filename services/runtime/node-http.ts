/**
 * Node's HTTP server. An `import` of `node:http` reads each name that the module has, and some of them load the HTTP client
 * behind `fetch`: 25 ms of CPU at the start of each process.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");
