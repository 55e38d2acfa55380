/** The pages that the gateway serves. Each name is also a folder beside this file and the path of the page. */
export const PAGES = ["display", "till", "back", "reconcile", "start"] as const;
export type PageName = (typeof PAGES)[number];

/** The folder of the built pages. `build.ts` writes it; the gateway reads it at the first request for a page. */
export const BUILT_PAGES = new URL("./dist/", import.meta.url);

/** What is in `manifest.json` of a build. */
export interface BuildManifest {
  /** The hash of everything that the build reads. A build is kept while its sources have this hash. */
  readonly sources: string;
  /** Each file by its path on the server. */
  readonly files: Readonly<Record<string, BuiltFile>>;
  /** The paths of the scripts that each page loads before its first paint. */
  readonly scripts: Readonly<Record<PageName, readonly string[]>>;
}

export interface BuiltFile {
  /** The path inside the folder of the build. The compressed files `.br` and `.gz` are beside it. */
  readonly file: string;
  readonly type: string;
  /** Whether the name has a hash of the content, so that a browser may keep the file for ever. */
  readonly hashed: boolean;
}
