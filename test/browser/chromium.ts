/**
 * A real browser: Debian's Chromium, the installed one or the package fetched into the cache, driven by playwright-core. One
 * browser for each test file, and one context for each person or device in a test. It is the build without windows: pages are
 * loaded, drawn and kept by the same code, for two thirds of the CPU time.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { debianPrograms } from "../support/debian-programs.ts";
import { drawsPictures, END_TRANSITIONS, picture } from "./pictures.ts";

const PROGRAM = "chromium-headless-shell";
const ARGUMENTS = [
  // Root has no sandbox; the browser opens pages of this checkout alone.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function startBrowser(): Promise<Browser> {
  const program = await debianPrograms(PROGRAM);
  const { path, libraries } = program[PROGRAM];
  if (libraries === "") return await chromium.launch({ executablePath: path, args: ARGUMENTS });
  // The one in `bin` is a script for an installed browser. PulseAudio's library is in a folder of its own.
  const folders = libraries.split(delimiter).flatMap((folder) => [folder, join(folder, "pulseaudio")]);
  return await chromium.launch({
    executablePath: join(dirname(path), "..", "lib", "chromium", PROGRAM),
    args: ARGUMENTS,
    env: { ...process.env, LD_LIBRARY_PATH: folders.join(delimiter) },
  });
}

/** Resolves when what has changed by now is on the screen. */
export const drawn = (page: Page) =>
  page.evaluate("new Promise((onFrame) => requestAnimationFrame(() => requestAnimationFrame(onFrame)))");

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/**
 * Expects that axe finds nothing that people with disabilities cannot use, in light and dark, and on a desktop at 200 % zoom too,
 * and that nothing is wider than a phone. With the state's name, `npm run pictures` draws it; it has axe read the phone's as well.
 */
export async function expectAccessible(page: Page, state?: string): Promise<void> {
  if (state !== undefined) await picture(page, state);
  // Evaluated by the debugger, which the page's policy does not concern.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE);
  // The scheme changes colours and nothing else.
  for (const [colorScheme, rules] of [
    ["light", {}],
    ["dark", { runOnly: ["color-contrast"] }],
  ] as const) {
    // Without motion: half-way through a change of colours the contrast is neither the one nor the other.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Transitions that began before go on; at their end the colours are those that people read.
    await page.evaluate(END_TRANSITIONS);
    expect(await violationsIn(page, rules), colorScheme).toEqual([]);
  }
  const size = page.viewportSize();
  if (size !== null && size.width >= LEAST_DESKTOP_PX) {
    // At 200 % a page has half as many pixels of style.
    await page.setViewportSize({ width: size.width / 2, height: Math.round(size.height / 2) });
    expect(await violationsIn(page, {}), "at 200 %").toEqual([]);
    await expectNoSideways(page);
    await page.setViewportSize(PHONE);
    // What is wrong at 360 pixels alone is a width most often; the long form looks for the rest, too.
    if (drawsPictures()) expect(await violationsIn(page, {}), "on a phone").toEqual([]);
    await expectNoSideways(page);
    await page.setViewportSize(size);
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** The narrowest that people use. */
const PHONE = { width: 360, height: 640 };
/** A narrower window is a phone's, or a zoomed one already. */
const LEAST_DESKTOP_PX = 1_000;

async function violationsIn(page: Page, rules: object): Promise<readonly string[]> {
  const options = JSON.stringify({ resultTypes: ["violations"], ...rules });
  const found = await page.evaluate<{ violations: readonly Violation[] }>(`axe.run(document, ${options})`);
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** Expects that nothing is wider than the window. */
export async function expectNoSideways(page: Page): Promise<void> {
  const [content, window] = await page.evaluate<[number, number]>("[document.documentElement.scrollWidth, innerWidth]");
  const wide = await page.evaluate<string[]>(
    "[...document.querySelectorAll('body *')].filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.outerHTML.slice(0, 200))",
  );
  expect(content, wide.join("\n")).toBeLessThanOrEqual(window);
}
