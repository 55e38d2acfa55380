/** Statement files: upload one, follow its import, confirm its format, release or withdraw it. */
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { Choice } from "../../shared/field.tsx";
import { Empty, FailureNotice, Skeleton } from "../../shared/states.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { go, param } from "../address.ts";
import { accounts } from "../known.ts";
import { words } from "../words.ts";
import { AddAccount } from "./add-account.tsx";
import { ChangeAccount } from "./change-account.tsx";
import { rememberHead } from "./file-heads.ts";
import { ImportCard } from "./import-card.tsx";
import { inTurn, upload } from "./upload.ts";

interface Sending {
  readonly key: number;
  readonly accountId: number;
  readonly name: string;
  readonly sizeBytes: number;
  readonly sentBytes: number;
  readonly failure: Failure | null;
}

/** An import of some thousand lines takes about a second. */
const REFRESH_MS = 1_500;
/** Imports that the page shows first and adds at each "more", and the most that one answer contains (`BOUNDS.listed`). */
const PAGE = 50;
const MAX_LISTED = 500;
let lastKey = 0;
/** Files that are being sent, or could not be sent. They outlive the section: a person may look at another one meanwhile. */
const uploads = signal<readonly Sending[]>([]);

export function ImportsSection() {
  /** The form that is open; a number is the account that it changes. */
  const form = useSignal<"add" | number | null>(null);
  const accountId = Number(param("account_id")) || (accounts.value[0]?.account_id ?? 0);
  const account = accounts.value.find((each) => each.account_id === accountId);
  const show = (wanted: typeof form.value) => () => {
    form.value = wanted;
  };
  // The address may name another account meanwhile: the form never changes an account that it does not show.
  useEffect(() => {
    if (form.peek() !== "add") form.value = null;
  }, [accountId]);
  if (accounts.value.length === 0 || form.value === "add") return <AddAccount onDone={show(null)} />;
  if (account !== undefined && form.value === accountId) return <ChangeAccount account={account} onDone={show(null)} />;
  return <ImportsOfAccount accountId={accountId} onAddAccount={show("add")} onChangeAccount={show(accountId)} />;
}

interface ImportsProps {
  readonly accountId: number;
  readonly onAddAccount: () => void;
  readonly onChangeAccount: () => void;
}

function ImportsOfAccount({ accountId, onAddAccount, onChangeAccount }: ImportsProps) {
  const sent = useSignal(0);
  const send = async (file: File): Promise<void> => {
    lastKey += 1;
    const key = lastKey;
    const change = (changes: Partial<Sending>): void => {
      uploads.value = uploads.value.map((one) => (one.key === key ? { ...one, ...changes } : one));
    };
    const begun = { key, accountId, name: file.name, sizeBytes: file.size, sentBytes: 0, failure: null };
    uploads.value = [...uploads.value, begun];
    const result = await inTurn(() => upload(accountId, file, (sentBytes) => change({ sentBytes })).ended);
    if (!result.ok) return change({ failure: result });
    await rememberHead(result.reply.import_id, file);
    uploads.value = uploads.value.filter((one) => one.key !== key);
    sent.value += 1;
  };

  return (
    <div class="imports stack">
      <div class="row imports-account">
        <Choice
          label={words().filter.account}
          value={String(accountId)}
          onChange={(value) => go({ account_id: value }, { isStep: false })}
          options={accounts.value.map(({ account_id, name }) => ({ value: String(account_id), text: name }))}
        />
        <Button onClick={onChangeAccount}>{words().account.change}</Button>
        <Button onClick={onAddAccount}>{words().account.add}</Button>
      </div>
      <DropZone onFiles={(files) => files.forEach((file) => void send(file))} />
      {uploads.value
        .filter((one) => one.accountId === accountId)
        .map((one) => (
          <SendingCard
            key={one.key}
            sending={one}
            onDismiss={() => {
              uploads.value = uploads.value.filter(({ key }) => key !== one.key);
            }}
          />
        ))}
      <ListedImports key={accountId} accountId={accountId} sent={sent.value} />
    </div>
  );
}

interface ListedProps {
  readonly accountId: number;
  /** Reads the list again when it changes. */
  readonly sent: number;
  /** Lists the imports before this one; the newest ones without it. */
  readonly beforeId?: number;
}

/** The imports of one answer, and those of the next answers when a person asks for more. */
function ListedImports({ accountId, sent, beforeId }: ListedProps) {
  const limit = useSignal(PAGE);
  const showsOlder = useSignal(false);
  const { data, failure, reload } = useLoad(
    String(beforeId),
    () =>
      call("GET /api/reconciliation/v1/imports/", {
        query: { account_id: accountId, before_id: beforeId, limit: limit.peek() },
      }),
    { everyMs: REFRESH_MS, keepsOld: true, again: sent },
  );
  const more = async (): Promise<void> => {
    if (limit.peek() === MAX_LISTED) showsOlder.value = true;
    limit.value = Math.min(MAX_LISTED, limit.peek() + PAGE);
    await reload();
  };
  const imports = data?.imports ?? [];
  const last = imports[imports.length - 1];
  const hasMore = data?.has_more === true && last !== undefined;
  return (
    <>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {data === null && failure === null && <Skeleton />}
      {data?.imports.length === 0 && beforeId === undefined && (
        <Empty title={words().imports.empty}>
          <p>{words().imports.emptyHelp}</p>
        </Empty>
      )}
      {imports.map((one) => (
        <ImportCard key={one.import_id} listed={one} onChanged={reload} />
      ))}
      {hasMore && !showsOlder.value && (
        <p class="more">
          <Button onClick={more}>{words().more}</Button>
        </p>
      )}
      {hasMore && showsOlder.value && <ListedImports accountId={accountId} sent={sent} beforeId={last.import_id} />}
    </>
  );
}

const filesOf = (list: FileList | null | undefined): readonly File[] => (list ? Array.from(list) : []);

/** For a file that misses the zone: the browser would leave the page and open it. */
function refuseFile(event: DragEvent): void {
  if (event.defaultPrevented) return;
  event.preventDefault();
  if (event.dataTransfer !== null) event.dataTransfer.dropEffect = "none";
}

function DropZone({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const isOver = useSignal(false);
  useEffect(() => {
    addEventListener("dragover", refuseFile);
    addEventListener("drop", refuseFile);
    return () => {
      removeEventListener("dragover", refuseFile);
      removeEventListener("drop", refuseFile);
    };
  }, []);
  return (
    <label
      class={isOver.value ? "drop drop-over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => {
        isOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        onFiles(filesOf(event.dataTransfer?.files));
      }}
    >
      <input
        class="for-readers"
        type="file"
        multiple
        onChange={({ currentTarget }) => {
          onFiles(filesOf(currentTarget.files));
          // So that a person can choose the same file again after a refusal.
          currentTarget.value = "";
        }}
      />
      <strong>{words().imports.drop}</strong>
      <span class="soft">{words().imports.dropHelp}</span>
    </label>
  );
}

function SendingCard({ sending, onDismiss }: { readonly sending: Sending; readonly onDismiss: () => void }) {
  const { name, sizeBytes, sentBytes, failure } = sending;
  return (
    <div class="card stack-tight">
      <p>
        <strong>{name}</strong>
      </p>
      {failure === null ? (
        <progress value={sentBytes} max={Math.max(1, sizeBytes)} aria-label={words().imports.sending(name)} />
      ) : (
        <>
          <FailureNotice failure={failure} />
          <Button local onClick={onDismiss}>
            {words().imports.dismiss}
          </Button>
        </>
      )}
    </div>
  );
}
