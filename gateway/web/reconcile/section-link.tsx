import { go, type Section, section } from "./address.ts";
import { words } from "./words.ts";

/** A section begins without the filters of the one before. */
export function SectionLink({ name }: { readonly name: Section }) {
  const address = `${location.pathname}?section=${name}`;
  const open = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    history.pushState(null, "", address);
    go({}, { isStep: false });
  };
  return (
    <a class="nav-link" href={address} onClick={open} aria-current={section() === name ? "page" : undefined}>
      {words().sections[name]}
    </a>
  );
}
