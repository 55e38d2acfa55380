/** Pictures of pages for the documents. Only `npm run pictures` writes them, not ordinary test runs. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";

export const PICTURES = "docs/pictures";
/** A script that ends all transitions, so that colours have their final values. */
export const END_TRANSITIONS =
  "document.getAnimations().forEach((each) => each instanceof CSSTransition && each.finish())";
const CHECKOUT = join(import.meta.dirname, "..", "..");

/** Whether `npm run pictures` has started this run. */
export const drawsPictures = (): boolean => process.env["PICTURES"] !== undefined;

/** Hostile text of other people, and in pictures for the documents what a restaurant has in its place. */
export const hostileText = (hostile: string, inPictures: string): string => (drawsPictures() ? inPictures : hostile);

type Size = NonNullable<ReturnType<Page["viewportSize"]>>;

/**
 * Takes pictures of the page in light and dark, as `<name>-light.png` and `<name>-dark.png`. With a size, the window has that
 * size.
 */
export async function picture(page: Page, name: string, size?: Size): Promise<void> {
  const folder = process.env["PICTURES"];
  if (folder === undefined) return;
  mkdirSync(join(CHECKOUT, folder), { recursive: true });
  const window = page.viewportSize();
  if (size !== undefined) await page.setViewportSize(size);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // Otherwise the picture would show the middle of the transition to the other scheme.
    await page.evaluate(END_TRANSITIONS);
    await page.screenshot({ path: join(CHECKOUT, folder, `${name}-${colorScheme}.png`) });
  }
  // Resets the scheme first, still without motion: otherwise its colours would still change in the next step of the test.
  await page.emulateMedia({ colorScheme: null });
  await page.emulateMedia({ reducedMotion: null });
  if (size !== undefined && window !== null) await page.setViewportSize(window);
}
