/** The screen where a person enters the code. It also explains why the display needs a code. */
import { LANGUAGE_NAMES, LANGUAGES } from "../shared/stored-language.ts";
import type { Actions, View } from "./view.ts";
import { chooseLanguage, chosenLanguage, words } from "./words.ts";

/** Characters of the code, without its hyphen. */
const CODE_LENGTH = 10;
const HALF = 5;

/** The typed code in its printed form: capitals, and a hyphen in the middle. */
function asCode(typed: string): string {
  const plain = typed
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, "")
    .slice(0, CODE_LENGTH);
  return plain.length > HALF ? `${plain.slice(0, HALF)}-${plain.slice(HALF)}` : plain;
}

interface PairingProps {
  readonly view: View;
  readonly actions: Actions;
}

export function PairingScreen(props: PairingProps) {
  const { isStopped } = props.view;
  return (
    <div class="frame frame-pair" data-screen={isStopped ? "stopped" : "pair"}>
      <header class="pair-language">
        <LanguageSwitch {...props} />
      </header>
      <main class="content">{isStopped ? <Stopped {...props} /> : <CodeForm {...props} />}</main>
    </div>
  );
}

function LanguageSwitch({ actions }: PairingProps) {
  return (
    <div class="language-switch" role="group" aria-label={words().language}>
      {LANGUAGES.map((each) => (
        <button
          key={each}
          type="button"
          lang={each}
          aria-pressed={chosenLanguage() === each}
          aria-label={`${each} ${LANGUAGE_NAMES[each]}`}
          onClick={() => {
            chooseLanguage(each);
            actions.change({});
          }}
        >
          {each}
        </button>
      ))}
    </div>
  );
}

function CodeForm({ view, actions }: PairingProps) {
  const { phase, problem, typedCode, isTypedWrong } = view;
  const texts = words().pair;
  const isPairing = phase === "enrolling";
  const hasEnded = !isPairing && (problem?.where === "poll" || problem?.where === "heartbeat");
  const fault = isTypedWrong ? texts.fault : enrollFault(view);
  const submit = (event: Event): void => {
    event.preventDefault();
    const isWrong = typedCode.length !== CODE_LENGTH + 1;
    actions.change({ isTypedWrong: isWrong });
    if (!isWrong && !isPairing) actions.enroll(typedCode);
  };
  return (
    <form class="pair-form" onSubmit={submit}>
      <h1>{hasEnded ? texts.unpaired : texts.title}</h1>
      {hasEnded && <p class="pair-why">{texts.unpairedHelp}</p>}
      <p>{texts.help}</p>
      <label class="pair-label" for="code">
        {texts.code}
      </label>
      <input
        id="code"
        class="pair-code"
        value={typedCode}
        onInput={({ currentTarget }) => {
          // Set it here: when the code stays the same, Preact would not replace the typed text.
          currentTarget.value = asCode(currentTarget.value);
          actions.change({ typedCode: currentTarget.value, isTypedWrong: false });
        }}
        placeholder="XXXXX-XXXXX"
        autoComplete="off"
        spellcheck={false}
        aria-invalid={fault !== "" && !isPairing}
        aria-describedby="fault"
      />
      <p id="fault" class={isPairing ? "pair-wait" : "pair-fault"} role="status">
        {fault}
      </p>
      <button type="submit" class="pair-button" aria-disabled={isPairing}>
        {isPairing ? texts.busy : texts.action}
      </button>
    </form>
  );
}

/** Why the service did not accept the code, or what the pairing waits for. */
function enrollFault({ phase, problem }: View): string {
  const texts = words().pair;
  if (problem?.where === "storage") return texts.noStorage;
  if (problem?.where !== "enroll") return "";
  if (phase === "enrolling") return texts.waiting;
  return problem.code === "enrollment_code_invalid" ? texts.codeInvalid : texts.failed(problem.code);
}

/** The service permanently refuses the display's requests. */
function Stopped({ view, actions }: PairingProps) {
  const texts = words().pair;
  const code = view.problem?.code ?? "";
  const isOtherKind = code === "scope_denied";
  return (
    <div class="pair-form">
      <h1>{isOtherKind ? texts.otherKind : texts.defect}</h1>
      <p>{isOtherKind ? texts.otherKindHelp : texts.defectHelp(code)}</p>
      <button type="button" class="pair-button" onClick={() => void actions.forget()}>
        {texts.again}
      </button>
    </div>
  );
}
