/** Sandboxes: seed, reset and delete them, and start test payments at one. */
import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { QrCode } from "../../shared/qr-code.tsx";
import { Empty } from "../../shared/states.tsx";
import { Table } from "../../shared/table.tsx";
import { TEXT_BOUNDS } from "../../shared/text-bounds.ts";
import { pairingAddress } from "../devices/code.tsx";
import { ask, openForm, showOnce } from "../shell/dialogs.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { Listed, mapReply, pageOf, usePages } from "../shell/loading.tsx";
import { type Places, usePlaces } from "../shell/places.ts";
import { StatusTag } from "../shell/status-tag.tsx";
import { shellWords } from "../shell/words.ts";
import { type Sandbox, SandboxCashier } from "./cashier.ts";
import { Play } from "./play.tsx";
import { words } from "./words.ts";

type Fresh = ReplyOf<"POST /api/backoffice/v1/sandboxes/">;

export function Sandboxes() {
  const places = usePlaces();
  const sandboxes = usePages("sandboxes", (since_id) =>
    mapReply(call("GET /api/backoffice/v1/sandboxes/", { query: { since_id } }), (reply) =>
      pageOf(reply.sandboxes, reply.has_more, (one) => one.sandbox_id),
    ),
  );
  const found = places.data;
  const played = useSignal<number | null>(null);
  // The service shows a password once. The panel keeps the passwords in memory, so that it can act as the cashier.
  const cashiers = useSignal<ReadonlyMap<number, SandboxCashier>>(new Map());
  const keep = (fresh: Fresh): void => {
    const { email, password } = fresh.cashier;
    const access = { email, password, stationId: fresh.station_id };
    cashiers.value = new Map(cashiers.peek()).set(fresh.sandbox_id, new SandboxCashier(access));
  };
  const showFresh = (fresh: Fresh): unknown => {
    keep(fresh);
    showCodes(fresh);
    return sandboxes.reload();
  };
  const playedSandbox = sandboxes.data?.find(({ sandbox_id }) => sandbox_id === played.value);
  const resetAndPlay = async (sandbox: Sandbox): Promise<void> =>
    ask({
      title: words().resetTitle(sandbox.name),
      text: [words().playNeedsPassword, words().resetText],
      action: words().resetAndPlay,
      isDangerous: true,
      run: () => call("POST /api/backoffice/v1/sandboxes/{sandbox_id}/reset/", { path: sandbox, body: {} }),
      after: (fresh) => {
        played.value = fresh.sandbox_id;
        return showFresh(fresh);
      },
    });
  const play = (sandbox: Sandbox): unknown => {
    if (!cashiers.value.has(sandbox.sandbox_id)) return resetAndPlay(sandbox);
    played.value = sandbox.sandbox_id;
    return undefined;
  };
  return (
    <>
      <SectionHead name="sandbox" intro={words().intro}>
        {found !== null && (
          <Button kind="main" onClick={() => seed(found, showFresh)}>
            {words().seed}
          </Button>
        )}
      </SectionHead>
      <Listed of={sandboxes} empty={<Empty title={words().empty}>{words().emptyText}</Empty>}>
        {(rows) => (
          <Table
            caption={shellWords().nav.sandbox}
            rows={rows}
            keyOf={(one) => one.sandbox_id}
            columns={[
              {
                title: shellWords().name,
                cell: (one) => (
                  <>
                    <strong>{one.name}</strong>
                    <div class="small soft">{places.data?.filialName(one.filial_id)}</div>
                  </>
                ),
              },
              { title: words().display, cell: (one) => <StatusTag status={one.display.status} /> },
              { title: words().companion, cell: (one) => <StatusTag status={one.companion.status} /> },
              { title: words().cashier, cell: (one) => <span class="small">{one.cashier.email}</span> },
              {
                title: words().lastReset,
                cell: (one) => (one.reset_at === null ? shellWords().never : dateAndTime(one.reset_at)),
              },
              {
                title: shellWords().actions,
                cell: (one) => (
                  <div class="cell-actions">
                    <Button kind="main" onClick={() => play(one)}>
                      {words().play}
                    </Button>
                    <Button onClick={() => reset(one, showFresh)}>{words().reset}</Button>
                    <Button kind="danger" onClick={() => remove(one, sandboxes.reload)}>
                      {words().remove}
                    </Button>
                  </div>
                ),
              },
            ]}
          />
        )}
      </Listed>
      {playedSandbox !== undefined && (
        <Play
          // A reset cancels the collection and ends the cashier's session, so the panel begins anew.
          key={`${playedSandbox.sandbox_id} ${playedSandbox.reset_at}`}
          sandbox={playedSandbox}
          cashier={cashiers.value.get(playedSandbox.sandbox_id)}
          reload={sandboxes.reload}
        />
      )}
    </>
  );
}

function showCodes(fresh: Fresh): void {
  const { display, companion, cashier, name } = fresh;
  showOnce({
    title: words().fresh(name),
    values: [
      { label: words().displayCode, value: display.enrollment_code },
      { label: words().companionCode, value: companion.enrollment_code },
      { label: words().cashierEmail, value: cashier.email },
      { label: words().cashierPassword, value: cashier.password },
    ],
    children: (
      <>
        <p class="small">{words().pair}</p>
        <QrCode content={pairingAddress(display.enrollment_code)} label={words().qrLabel} />
      </>
    ),
  });
}

function seed(places: Places, then: (fresh: Fresh) => unknown): void {
  openForm({
    title: words().seed,
    intro: words().seedIntro,
    action: words().seed,
    fields: [
      { name: "filial_id", label: shellWords().filial, options: places.filialOptions },
      { name: "name", label: shellWords().name, initial: "Sandbox", maxLength: TEXT_BOUNDS.name },
      {
        name: "currency",
        label: words().currency,
        initial: "EUR",
        maxLength: 3,
        check: (value) => (/^[A-Za-z]{3}$/.test(value) ? null : words().currencyFault),
      },
    ],
    run: ({ filial_id, name = "", currency = "" }, key) =>
      call("POST /api/backoffice/v1/sandboxes/", {
        body: { filial_id: Number(filial_id), name, currency: currency.toUpperCase() },
        key,
      }),
    after: then,
  });
}

function reset(sandbox: Sandbox, then: (fresh: Fresh) => unknown): void {
  ask({
    title: words().resetTitle(sandbox.name),
    text: [words().resetText],
    action: words().reset,
    isDangerous: true,
    run: () => call("POST /api/backoffice/v1/sandboxes/{sandbox_id}/reset/", { path: sandbox, body: {} }),
    after: then,
  });
}

function remove(sandbox: Sandbox, then: () => unknown): void {
  ask({
    title: words().removeTitle(sandbox.name),
    text: [words().removeText],
    action: words().remove,
    isDangerous: true,
    run: () => call("DELETE /api/backoffice/v1/sandboxes/{sandbox_id}/", { path: sandbox }),
    done: words().removed,
    after: then,
  });
}
