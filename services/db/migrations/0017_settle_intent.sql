-- The payment seam: the only statement of this product that writes `transactions` (I2), in one round trip and one
-- transaction. It locks the order, then the asserted payment, then the reference; every caller takes the locks in this
-- order. It is a function and not one statement with several CTEs, because each statement in it sees what was committed
-- while it waited for a lock; a CTE would still see the moment before.
--
-- It returns the transaction's id, or else why nothing was settled. It is idempotent by intent id: an intent that is paid
-- is reported as paid to whichever attestation asks. One that is not paid repeats the refusal of an attestation that was
-- refused, and only another attestation can pay it. An asserted payment that has paid another intent, or that a person
-- has closed as dealt with outside, pays nothing.
--
-- `the_reference_key` is null where a reference is not compared. `the_reference_window` is how far back it is compared;
-- null is without end. `the_confirmation` is true when the cashier knows of the earlier order. `reference_used_by` is the
-- transaction that has used the reference.
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
  in the_money_key text default null,
  in the_reference_key text default null,
  in the_reference_window interval default null,
  in the_confirmation boolean default false,
  out settled_as bigint,
  out refusal text,
  out reference_used_by bigint
)
-- Plans are kept from when the tables were small; they must not read whole tables when these have grown.
language plpgsql set enable_seqscan = off as $$
declare
  found_order orders;
  found_filial_id bigint;
  names text[];
begin
  -- First, so that everything below sees what an earlier question has committed.
  select * into found_order from orders where order_id = the_order_id and station_id = the_station_id for update;

  -- Perhaps it was settled before: a host that crashed, or lost the answer, asks again.
  select paid.transaction_id into settled_as from transactions as paid
    where paid.intent_id = the_intent_id and paid.order_id = the_order_id;
  if found and found_order.order_id is not null then
    return;
  end if;
  settled_as := null;
  select earlier.refusal, earlier.used_by into refusal, reference_used_by from settlement_refusals as earlier
    where earlier.intent_id = the_intent_id and earlier.attestation_id = the_attestation_id;
  if found then
    return;
  end if;

  if found_order.order_id is null then
    refusal := 'order_unknown';
  else
    if the_money_key is not null then
      perform lock_settled_money(regexp_replace(the_money_key, '^provider:[0-9]+:', ''));
      names := names_of_settlement(the_intent_id, the_money_key);
      perform from paid_money_names where name = any (names)
        union all select from provider_issues where money_names && names and status = 'closed' and transaction_id is null;
      if found then
        refusal := 'money_already_used';
      end if;
    end if;
    if refusal is null and found_order.status = 'open'
        and (found_order.total_minor, found_order.currency) = (the_amount_minor, the_currency) then
      if the_reference_key is not null then
        select s.filial_id into found_filial_id from stations as s where s.station_id = the_station_id;
        -- Two counters may use one slip at the same moment: the second one waits here and sees the first one's row. A
        -- confirmed attestation takes the lock too, because another one must see its row as well.
        perform pg_advisory_xact_lock(
          hashtextextended('settled reference ' || found_filial_id || ' ' || the_reference_key, 0));
        if not the_confirmation then
          select used.transaction_id into reference_used_by from settled_references as used
            where used.filial_id = found_filial_id and used.reference_key = the_reference_key
              and (the_reference_window is null or used.settled_at > clock_timestamp() - the_reference_window)
            order by used.transaction_id desc limit 1;
          if found then
            refusal := 'reference_already_used';
          end if;
        end if;
      end if;
      if refusal is null then
        insert into transactions
          (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by, money_key)
        values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor,
          the_currency, the_reference, the_cashier_id, the_money_key)
        on conflict do nothing
        returning transaction_id into settled_as;
        if found then
          insert into paid_money_names (name, transaction_id) select name, settled_as from unnest(names) as name;
          if the_reference_key is not null then
            insert into settled_references (filial_id, reference_key, transaction_id)
              values (found_filial_id, the_reference_key, settled_as);
          end if;
          update orders set status = 'paid', revision = revision + 1 where order_id = the_order_id;
          return;
        end if;
      end if;
    end if;
    refusal := coalesce(refusal, case found_order.status
      when 'paid' then 'order_already_paid'
      when 'voided' then 'order_voided'
      else 'order_changed'
    end);
  end if;
  -- Two may ask at once for an order that is unknown, because there is nothing to lock.
  insert into settlement_refusals (intent_id, attestation_id, refusal, used_by)
    values (the_intent_id, the_attestation_id, settle_intent.refusal, reference_used_by)
    on conflict (intent_id, attestation_id) do nothing;
end
$$;
