/** The pages that the gateway serves. The folder beside this file and the path have the page's name. */
export const PAGES = ["display", "till", "back", "reconcile", "start"] as const;
export type PageName = (typeof PAGES)[number];

/** Where the built pages are; `build.ts` writes it, the gateway reads it at the first request for a page. */
export const BUILT_PAGES = new URL("./dist/", import.meta.url);

/** What is in `manifest.json` of a build. */
export interface BuildManifest {
  /** Of everything that the build reads. A build whose sources have this hash is kept. */
  readonly sources: string;
  /** Each file by its path on the server. */
  readonly files: Readonly<Record<string, BuiltFile>>;
  /** Of each page: the scripts that it loads before its first paint, by their paths. */
  readonly scripts: Readonly<Record<PageName, readonly string[]>>;
}

export interface BuiltFile {
  /** Below the folder of the build; compressed bodies are beside it as `.br` and `.gz`. */
  readonly file: string;
  readonly type: string;
  /** Whether the name has a hash of the content, so that a browser may keep the file for ever. */
  readonly hashed: boolean;
}
