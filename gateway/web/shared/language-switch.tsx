import { chooseLanguage, language } from "./language.ts";
import { LANGUAGE_NAMES, LANGUAGES } from "./stored-language.ts";
import { sharedWords } from "./words.ts";

export function LanguageSwitch() {
  return (
    <div class="language-switch" role="group" aria-label={sharedWords().language}>
      {LANGUAGES.map((each) => (
        <button
          key={each}
          type="button"
          lang={each}
          aria-pressed={language.value === each}
          // The label contains the visible text, because people who use voice control say that text.
          aria-label={`${each} ${LANGUAGE_NAMES[each]}`}
          onClick={() => chooseLanguage(each)}
        >
          {each}
        </button>
      ))}
    </div>
  );
}
