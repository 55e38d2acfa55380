// The first step of every npm script. Plain JavaScript, because the Node found on a fresh machine may be too old to run
// TypeScript: it brings the dependencies up to date, then runs the given .ts file on the pinned Node.
// Usage: node deploy/bootstrap.mjs [--production] <file.ts> [arguments for it]
// --production: the file runs without the packages for development, so an installation without them is complete for it.
const OLDEST_NODE_MAJOR = 18;

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE_MAJOR) {
  process.stderr.write(
    `Node ${OLDEST_NODE_MAJOR} or newer is needed to set this up, and this is Node ${process.versions.node}.\n`,
  );
  process.exitCode = 1;
} else {
  // Imported only now, so that an older Node prints the sentence above and not a syntax error.
  const { main } = await import("./bootstrap/main.mjs");
  await main(process.argv.slice(2));
}
