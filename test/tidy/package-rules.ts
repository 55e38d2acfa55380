/** What package.json, the lockfile and CONTRIBUTING.md must agree on. */

interface PackageJson {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const EXACT = /^(?:npm:(?:@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/** Complaints about dependencies: each is pinned exactly, and CONTRIBUTING.md says why it is there. */
export function dependenciesArePinnedAndExplained(packageJson: string, contributing: string): readonly string[] {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(packageJson) as PackageJson;
  const tableRows = contributing.split("\n").filter((line) => line.startsWith("|"));
  return Object.entries({ ...dependencies, ...devDependencies }).flatMap(([name, version]) => [
    ...(EXACT.test(version) ? [] : [`package.json asks for ${name} as "${version}"; pin one exact version.`]),
    ...(tableRows.some((row) => row.split("|")[1]?.includes(`\`${name}\``))
      ? []
      : [`CONTRIBUTING.md's table of dependencies does not say why ${name} is there.`]),
  ]);
}
