/** Pictures of pages for the documents: `npm run pictures` writes them, ordinary runs of the tests do not. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

export const PICTURES = "docs/pictures";
/** A script: colours that still change become what they will be. */
export const END_TRANSITIONS =
  "document.getAnimations().forEach((each) => each instanceof CSSTransition && each.finish())";
const CHECKOUT = join(import.meta.dirname, "..", "..");

/** Whether this run is that of `npm run pictures`. */
export const drawsPictures = (): boolean => process.env["PICTURES"] !== undefined;

type Size = NonNullable<ReturnType<Page["viewportSize"]>>;

/**
 * Draws what the page shows now, in light and dark, as `<name>-light.png` and `<name>-dark.png`; with a size, as a window of
 * that size shows it.
 */
export async function picture(page: Page, name: string, size?: Size): Promise<void> {
  const folder = process.env["PICTURES"];
  if (folder === undefined) return;
  mkdirSync(join(CHECKOUT, folder), { recursive: true });
  const window = page.viewportSize();
  if (size !== undefined) await page.setViewportSize(size);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // What the change of scheme has begun would be drawn half-way.
    await page.evaluate(END_TRANSITIONS);
    await page.screenshot({ path: join(CHECKOUT, folder, `${name}-${colorScheme}.png`) });
  }
  // First the scheme alone: with motion its colours would change slowly, also in what a test does next.
  await page.emulateMedia({ colorScheme: null });
  await page.emulateMedia({ reducedMotion: null });
  if (size !== undefined && window !== null) await page.setViewportSize(window);
}
