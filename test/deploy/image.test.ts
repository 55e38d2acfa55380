/** The Dockerfile: what it says, and its steps in a clean folder, where every process loads with what the image has. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Copy, DockerfileParser, type Instruction } from "dockerfile-ast";
import { afterAll, describe, expect, it } from "vitest";
import { SERVICES } from "../../services/catalogue.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const FOLDER = join(CHECKOUT, "deploy", "production");
const dockerfile = DockerfileParser.parse(readFileSync(join(FOLDER, "Dockerfile"), "utf8"));
const instructions = dockerfile.getInstructions();
const textOf = (instruction: Instruction): string => instruction.getArgumentsContent() ?? "";
const of = (keyword: string): readonly Instruction[] =>
  instructions.filter((each) => each.getKeyword().toUpperCase() === keyword);

describe("the Dockerfile", () => {
  it("two stages on one glibc base by digest; an unprivileged user, ports, and no shell in what is run", () => {
    const bases = dockerfile.getFROMs();
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base.getImage()).toMatch(/^node:22\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/);
    expect(new Set(bases.map((base) => base.getImageDigest())).size).toBe(1);
    expect(of("USER").map(textOf)).toEqual(["1000:1000"]);
    expect(of("EXPOSE").map(textOf)).toEqual(["8080 9480"]);
    for (const each of [...of("ENTRYPOINT"), ...of("CMD")]) expect(JSON.parse(textOf(each))).toBeInstanceOf(Array);
    expect(of("ADD")).toEqual([]);
  });

  it("what it copies is sent to the builder, and nothing else", () => {
    const sources = dockerfile
      .getCOPYs()
      .filter((copy) => copy.getFromFlag() === null)
      .flatMap(sourcesOf);
    const ignore = readFileSync(join(FOLDER, "Dockerfile.dockerignore"), "utf8").split("\n");
    const sent = ignore.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    expect(ignore).toContain("*");
    expect(new Set(sources)).toEqual(new Set(sent));
    for (const source of sources) expect(existsSync(join(CHECKOUT, source)), source).toBe(true);
  });
});

describe("the steps in a clean folder", () => {
  const folder = temporaryFolder("image");
  afterAll(() => folder.remove());
  /** Where a path of the image is. */
  const inImage = (path: string): string => join(folder.path, path);
  const run = (...args: readonly string[]): string => {
    const environment = { PATH: "/usr/bin:/bin", NODE_ENV: "production" };
    const options = { cwd: inImage("/app"), encoding: "utf8", env: environment } as const;
    return execFileSync(inImage("/app/node_modules/.bin/node"), args, options);
  };

  it("each process, and each command of the image: its program loads, without what is for development", () => {
    for (const instruction of instructions) perform(instruction, inImage);
    expect(run("gateway/main.ts", "--help")).toContain("node gateway/main.ts");
    expect(run("services/main.ts", "stations", "--help")).toContain("node services/main.ts stations");
    expect(run("services/migrate.ts", "--help")).toContain("--replicas");
    expect(run("clients/organization.ts", "--help")).toContain("create --name");
    const services = Object.keys(SERVICES).map((name) => `./services/${name}/service.ts`);
    const programs = ["./gateway/run-gateway.ts", "./services/db/migrate-installation.ts", ...services];
    const loading = programs.map((program) => `await import(${JSON.stringify(program)});`).join("");
    expect(run("--input-type=module", "-e", `${loading} process.stdout.write("loaded"); process.exit(0);`)).toBe(
      "loaded",
    );
  });
});

function sourcesOf(copy: Copy): readonly string[] {
  return copy
    .getArguments()
    .slice(0, -1)
    .map((argument) => argument.getValue());
}

/** Does what Docker does, below a folder. Instead of installing packages it links those that are here. */
function perform(instruction: Instruction, inImage: (path: string) => string): void {
  const keyword = instruction.getKeyword().toUpperCase();
  if (keyword === "WORKDIR") mkdirSync(inImage(textOf(instruction)), { recursive: true });
  if (keyword === "RUN") {
    expect(textOf(instruction)).toBe("npm ci --omit=dev && node_modules/.bin/node --version");
    linkPackages(inImage("/app"));
  }
  if (keyword !== "COPY") return;
  const copy = instruction as Copy;
  // Both stages have one folder here, so what one takes from the other is in its place.
  if (copy.getFromFlag() !== null) return;
  const sources = sourcesOf(copy);
  for (const source of sources) cpSync(join(CHECKOUT, source), join(inImage("/app"), source), { recursive: true });
}

interface LockedPackage {
  readonly dev?: boolean;
}

/** The packages that `npm ci --omit=dev` installs at the top. */
function linkPackages(app: string): void {
  const { packages } = JSON.parse(readFileSync(join(app, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  for (const [path, { dev }] of Object.entries(packages)) {
    const isTop = path.lastIndexOf("node_modules/") === 0;
    if (!isTop || dev === true || !existsSync(join(CHECKOUT, path))) continue;
    mkdirSync(dirname(join(app, path)), { recursive: true });
    symlinkSync(join(CHECKOUT, path), join(app, path));
  }
  mkdirSync(join(app, "node_modules", ".bin"), { recursive: true });
  symlinkSync("../node/bin/node", join(app, "node_modules", ".bin", "node"));
}
