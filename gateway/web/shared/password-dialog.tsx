/** Changes the password of the signed-in person. All pages use this dialog, each with its own API. */
import { useSignal } from "@preact/signals";
import { Button } from "./button.tsx";
import { isUnknown, type Result } from "./call.ts";
import { Dialog, useIsOpen } from "./dialog.tsx";
import type { Failure } from "./failures.ts";
import { Field } from "./field.tsx";
import { minutesAndSeconds } from "./format.ts";
import type { RequestOf } from "./operations.ts";
import { FailureNotice, Notice } from "./states.tsx";
import { toast } from "./toasts.tsx";
import { sharedWords } from "./words.ts";

type Body = RequestOf<"PUT /api/cashier/v1/session/password/">["body"];

/** The same bounds as in the service (`BOUNDS.passwordCharacters`). */
export const MIN_PASSWORD_CHARACTERS = 12;
const MAX_CHARACTERS = 1_000;

interface PasswordDialogProps {
  readonly change: (body: Body) => Promise<Result<unknown>>;
  readonly onClose: () => void;
}

interface Typed {
  readonly old: string;
  readonly next: string;
  readonly again: string;
}

function faultsOf({ old, next, again }: Typed): Readonly<Record<keyof Typed, string | null>> {
  const { required, newPasswordFault, repeatFault } = sharedWords();
  return {
    old: old === "" ? required : null,
    next: next.length < MIN_PASSWORD_CHARACTERS ? newPasswordFault : null,
    again: again === next ? null : repeatFault,
  };
}

const isOldWrong = (failure: Failure | null): boolean =>
  failure?.errors?.some(({ pointer }) => pointer === "/old_password") === true;

export function PasswordDialog({ change, onClose }: PasswordDialogProps) {
  const typed = useSignal<Typed>({ old: "", next: "", again: "" });
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const wasTried = useSignal(false);
  const isOpen = useIsOpen();
  const faults = faultsOf(typed.value);
  const texts = sharedWords();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    wasTried.value = true;
    if (isBusy.peek() || Object.values(faults).some((fault) => fault !== null)) return;
    isBusy.value = true;
    const { old, next } = typed.peek();
    const result = await change({ old_password: old, new_password: next });
    isBusy.value = false;
    failure.value = result.ok ? null : result;
    if (!result.ok) return;
    if (isOpen()) onClose();
    toast(sharedWords().passwordChanged);
  };
  const field = (name: keyof Typed, label: string, help?: string) => (
    <Field
      label={label}
      help={help}
      type="password"
      autoComplete={name === "old" ? "current-password" : "new-password"}
      maxLength={MAX_CHARACTERS}
      required
      value={typed.value[name]}
      fault={
        (wasTried.value ? faults[name] : null) ??
        (name === "old" && isOldWrong(failure.value) ? texts.wrongPassword : null)
      }
      onInput={(value) => {
        typed.value = { ...typed.peek(), [name]: value };
        // The shown failure was about the previous input.
        failure.value = null;
      }}
    />
  );
  return (
    <Dialog title={texts.changePassword} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)} noValidate>
        <p class="soft">{texts.changePasswordHelp}</p>
        {field("old", texts.oldPassword)}
        {field("next", texts.newPassword, texts.newPasswordHelp)}
        {field("again", texts.repeatPassword)}
        {failure.value !== null && !isOldWrong(failure.value) && <Refused failure={failure.value} />}
        <div class="row row-spread">
          <Button local onClick={onClose}>
            {texts.cancel}
          </Button>
          <Button kind="main" submit busy={isBusy.value}>
            {texts.changePassword}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The limit counts this session's attempts, so another sign-in does not help. After a lost answer either password may hold. */
function Refused({ failure }: { readonly failure: Failure }) {
  if (failure.code === "login_throttled") {
    return (
      <Notice tone="bad" title={sharedWords().passwordThrottled} isUrgent>
        <p>{sharedWords().tryAgainIn(minutesAndSeconds(failure.retryAfterMs ?? 0))}</p>
      </Notice>
    );
  }
  return (
    <>
      <FailureNotice failure={failure} />
      {isUnknown(failure) && (
        <Notice tone="warn" title={sharedWords().passwordUnknown}>
          <p>{sharedWords().passwordUnknownHelp}</p>
        </Notice>
      )}
    </>
  );
}
