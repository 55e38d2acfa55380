-- The fence of the payment seam (design §2.4): what an attestation was refused, it stays refused. A host that was cut off
-- may ask late, when the order is as it was again, or when the cashier has cancelled because of the refusal; without the
-- fence its late question would pay.

create table settlement_refusals (
  intent_id bigint not null,
  -- The command that attested, escaped as in a JSON string, because a command id may hold what a text cannot.
  attestation_id text not null,
  refusal text not null check (refusal in ('order_changed', 'order_already_paid', 'order_voided', 'order_unknown')),
  refused_at timestamptz not null default clock_timestamp(),
  primary key (intent_id, attestation_id)
);
create trigger settlement_refusals_append_only before update or delete on settlement_refusals
  for each row execute function refuse_change();
create trigger settlement_refusals_not_truncated before truncate on settlement_refusals
  for each statement execute function refuse_change();

-- What was the seam until now is its inner half: it knows orders and transactions, and nothing of attestations.
alter function settle_intent(bigint, bigint, bigint, text, bigint, text, text, bigint) rename to settle_against_order;

-- The payment seam: one round trip, one transaction. Returns the transaction's id, or else why nothing was settled.
-- Idempotent by intent id: an intent that is paid is told as paid to whichever attestation asks. One that is not paid
-- repeats the refusal of an attestation that was refused, and can be paid by another attestation only.
create function settle_intent(
  in the_intent_id bigint,
  in the_attestation_id text,
  in the_station_id bigint,
  in the_order_id bigint,
  in the_route text,
  in the_amount_minor bigint,
  in the_currency text,
  in the_reference text,
  in the_cashier_id bigint,
  out settled_as bigint,
  out refusal text
) language plpgsql as $$
begin
  -- First, so that everything below sees what whoever asked before has committed.
  perform from orders where order_id = the_order_id and station_id = the_station_id for update;

  select earlier.refusal into refusal from settlement_refusals as earlier
    where earlier.intent_id = the_intent_id and earlier.attestation_id = the_attestation_id;
  if found then
    select paid.transaction_id into settled_as from transactions as paid
      where paid.intent_id = the_intent_id and paid.order_id = the_order_id;
    if found then
      refusal := null;
    end if;
    return;
  end if;

  select outcome.settled_as, outcome.refusal into settled_as, refusal from settle_against_order(
    the_intent_id, the_station_id, the_order_id, the_route, the_amount_minor, the_currency, the_reference, the_cashier_id
  ) as outcome;
  if refusal is not null then
    -- Two may ask at once for an order that is unknown, because there is nothing to lock.
    insert into settlement_refusals (intent_id, attestation_id, refusal)
      values (the_intent_id, the_attestation_id, settle_intent.refusal)
      on conflict (intent_id, attestation_id) do nothing;
  end if;
end
$$;
