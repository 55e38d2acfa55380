/** What a cashier does at the till, in a page or in a frame of one. */
import type { Frame, Locator, Page } from "playwright-core";
import type { LogIn } from "../support/system.ts";

/** How long a page may take on a busy machine. */
export const SHOWN = { timeout: 20_000 };
type Place = Frame | Page;

export const button = (place: Place, name: string | RegExp) => place.getByRole("button", { name, exact: true });
export const click = (place: Place, name: string | RegExp) => button(place, name).click(SHOWN);
export const isShown = (place: Place, text: string | RegExp) => place.getByText(text).first().waitFor(SHOWN);

export async function signIn(
  place: Place,
  { email, password }: LogIn,
  within: Locator = place.locator("body"),
): Promise<void> {
  await within.getByLabel("E-mail address").fill(email, SHOWN);
  await within.getByLabel("Password").fill(password);
  await within.getByRole("button", { name: "Sign in", exact: true }).click(SHOWN);
}

export async function addLine(place: Place, name = "Soup", price = "12.50"): Promise<void> {
  const form = place.getByRole("form", { name: "Free line" });
  await form.getByLabel("Name").fill(name, SHOWN);
  await form.getByLabel("Price").fill(price);
  await click(place, "Add");
}
