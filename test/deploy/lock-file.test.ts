/** `npm ci` refuses a lock file that lacks a package, and a new machine uses only `npm ci`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly optional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
type Packages = Readonly<Record<string, LockedPackage>>;

const CHECKOUT = join(import.meta.dirname, "..", "..");
const json = (file: string): unknown => JSON.parse(readFileSync(join(CHECKOUT, file), "utf8"));

/** Whether Node finds the package from this folder of the lock file: in its node_modules or in those of a parent folder. */
function isFound(packages: Packages, from: string, name: string): boolean {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    if (packages[folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

/** The packages that a package asks for and that the lock file lacks, including packages of other platforms. */
function leftOut(packages: Packages): string[] {
  return Object.entries(packages).flatMap(([path, { dependencies, devDependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...(path === "" ? devDependencies : {}), ...optionalDependencies })
      .filter((name) => !isFound(packages, path, name))
      .map((name) => `${path || "the project"} asks for ${name}`),
  );
}

describe("package-lock.json", () => {
  const { packages } = json("package-lock.json") as { packages: Packages };

  test("package-lock.json: it names every package that a package asks for, on every platform", () => {
    expect(leftOut(packages)).toEqual([]);
  });

  test("a lock file without one platform's package: the check finds it", () => {
    const { "node_modules/@biomejs/cli-darwin-arm64": _left, ...others } = packages;
    expect(leftOut(others)).toEqual(["node_modules/@biomejs/biome asks for @biomejs/cli-darwin-arm64"]);
  });

  test("package-lock.json: it has the versions of package.json, and an integrity for all but one platform's tools", () => {
    type Wanted = Record<"dependencies" | "devDependencies", Record<string, string>>;
    const { dependencies, devDependencies } = json("package.json") as Wanted;
    for (const [name, wanted] of Object.entries({ ...dependencies, ...devDependencies })) {
      expect(packages[`node_modules/${name}`]?.version, name).toBe(wanted.split("@").at(-1));
    }
    const loose = Object.entries(packages).filter(([path, found]) => path !== "" && found.integrity === undefined);
    expect(loose.filter(([, found]) => found.optional !== true)).toEqual([]);
  });
});
