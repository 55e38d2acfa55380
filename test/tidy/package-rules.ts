/** What package.json, the lockfile and CONTRIBUTING.md must agree on. */

interface PackageJson {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
}

const EXACT = /^(?:npm:(?:@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/** Complaints about dependencies: each is pinned exactly, and CONTRIBUTING.md has the reason for it. */
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

/**
 * Complaints about install scripts: `allowScripts` decides each by the package's name alone. The lockfile has no addresses, so
 * npm knows no version that it trusts, and does not apply an entry with a version.
 */
export function installScriptsAreDecided(packageJson: string, lockfile: string): readonly string[] {
  const { allowScripts = {} } = JSON.parse(packageJson) as PackageJson;
  const { packages } = JSON.parse(lockfile) as Lockfile;
  return Object.entries(packages).flatMap(([path, { hasInstallScript }]) => {
    const name = path.split("node_modules/").at(-1) ?? "";
    if (name === "" || hasInstallScript !== true || name in allowScripts) return [];
    return [`package.json does not say in "allowScripts" whether npm runs the install script of ${name}.`];
  });
}
