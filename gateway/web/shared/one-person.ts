/**
 * A browser has one session of each API. When another person signs in on one tab, the requests of all other tabs also belong
 * to that person. So those tabs reload, and no tab acts under another person's name.
 */
let mine: { readonly key: string; readonly userId: string } | undefined;

addEventListener("storage", ({ key, newValue }) => {
  if (key === mine?.key && newValue !== null && newValue !== mine.userId) location.reload();
});

/** The page calls it with the person of each session that it finds or begins. */
export function keepOnePerson(api: "backoffice" | "cashier" | "reconciliation", userId: number): void {
  mine = { key: `dp_person_${api}`, userId: String(userId) };
  try {
    localStorage.setItem(mine.key, mine.userId);
  } catch {
    // A browser that stores nothing does not notify other tabs.
  }
}
