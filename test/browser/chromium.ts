/**
 * A real browser: Debian's Chromium, the installed one or the package fetched into the cache, driven by playwright-core. One
 * browser for each test file, and one context for each person or device in a test. It is the headless build: the same code
 * loads and renders pages, in two thirds of the CPU time.
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
  // Chromium's sandbox does not work as root. The browser opens only pages of this checkout.
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
  // The program in `bin` is a script that needs an installed browser. PulseAudio's library is in its own folder.
  const folders = libraries.split(delimiter).flatMap((folder) => [folder, join(folder, "pulseaudio")]);
  return await chromium.launch({
    executablePath: join(dirname(path), "..", "lib", "chromium", PROGRAM),
    args: ARGUMENTS,
    env: { ...process.env, LD_LIBRARY_PATH: folders.join(delimiter) },
  });
}

/** Resolves when the screen shows all changes so far. */
export const drawn = (page: Page) =>
  page.evaluate("new Promise((onFrame) => requestAnimationFrame(() => requestAnimationFrame(onFrame)))");

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/**
 * Expects that axe finds no violation: in light and dark, and on a desktop also at 200 % zoom. Also expects that nothing is wider
 * than a phone. `npm run pictures` takes a picture of a named state, and also runs axe at a phone's size.
 */
export async function expectAccessible(page: Page, state?: string): Promise<void> {
  if (state !== undefined) await picture(page, state);
  // The debugger evaluates axe, so the page's content security policy does not block it.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(AXE);
  // The scheme changes only colours.
  for (const [colorScheme, rules] of [
    ["light", {}],
    ["dark", { runOnly: ["color-contrast"] }],
  ] as const) {
    // Without motion: in the middle of a transition the contrast is wrong.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Ends the transitions that began before, so that the final colours are checked.
    await page.evaluate(END_TRANSITIONS);
    expect(await violationsIn(page, rules), colorScheme).toEqual([]);
  }
  const size = page.viewportSize();
  if (size !== null && size.width >= LEAST_DESKTOP_PX) {
    // At 200 % zoom a page has half as many CSS pixels.
    await page.setViewportSize({ width: size.width / 2, height: Math.round(size.height / 2) });
    expect(await violationsIn(page, {}), "at 200 %").toEqual([]);
    await expectNoSideways(page);
    await page.setViewportSize(PHONE);
    // Faults only at 360 pixels are mostly widths. The long form also checks all other rules there.
    if (drawsPictures()) expect(await violationsIn(page, {}), "on a phone").toEqual([]);
    await expectNoSideways(page);
    await page.setViewportSize(size);
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** The narrowest window that people use. */
const PHONE = { width: 360, height: 640 };
/** A narrower window is a phone's, or already zoomed. */
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
