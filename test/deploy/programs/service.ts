// A service process: its argument decides how it ends.
const what = process.argv[2];
const keepAlive = setInterval(() => undefined, 1_000);
process.on("SIGTERM", () => {
  if (what === "deaf") return;
  clearInterval(keepAlive);
  process.disconnect();
});
if (what === "refuses") {
  process.send?.({ ready: false, code: "no_luck", message: "There is no luck today." });
  process.exit(3);
}
if (what === "crashes") throw new Error("a detail for the log");
if (what !== "silent") process.send?.({ ready: true, port: 4711 });
if (what === "dies") setTimeout(() => process.exit(5), 200);
if (what === "resigns") {
  setTimeout(() => {
    process.send?.({ ready: false, code: "schema_newer", message: "The database is newer than this." });
    process.exit(3);
  }, 200);
}
