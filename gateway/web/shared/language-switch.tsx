import { chooseLanguage, LANGUAGES, type Language, language } from "./language.ts";
import { sharedWords } from "./words.ts";

const NAMES: Readonly<Record<Language, string>> = { en: "English", de: "Deutsch" };

export function LanguageSwitch() {
  return (
    <div class="language-switch" role="group" aria-label={sharedWords().language}>
      {LANGUAGES.map((each) => (
        <button
          key={each}
          type="button"
          lang={each}
          aria-pressed={language.value === each}
          // It has the visible text, which people say who steer by voice.
          aria-label={`${each} ${NAMES[each]}`}
          onClick={() => chooseLanguage(each)}
        >
          {each}
        </button>
      ))}
    </div>
  );
}
