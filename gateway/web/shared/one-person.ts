/**
 * A browser has one session of each API. When another person signs in on one tab, the requests of all other tabs are that
 * person's too: those tabs begin anew, and work for no person under the name of another.
 */
let mine: { readonly key: string; readonly userId: string } | undefined;

addEventListener("storage", ({ key, newValue }) => {
  if (key === mine?.key && newValue !== null && newValue !== mine.userId) location.reload();
});

/** Called with each person whose session this tab has found or begun. */
export function keepOnePerson(api: "backoffice" | "cashier" | "reconciliation", userId: number): void {
  mine = { key: `dp_person_${api}`, userId: String(userId) };
  try {
    localStorage.setItem(mine.key, mine.userId);
  } catch {
    // A browser that stores nothing for pages.
  }
}
