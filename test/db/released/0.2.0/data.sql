-- A small database of version 0.2.0: a person, a station with a device, an order that was paid, a provider's asserted
-- payment, what the audit copy has of the collection, and what waits for the relay.
update installation set id = '6d6f6e65-7920-4973-8e65-7665722c206f';
insert into organizations (name) values ('Bistro');
insert into users (organization_id, email, name, role, password_hash) values (1, 'casey@bistro.example', 'Casey', 'cashier', 'x');
insert into filials (organization_id, name) values (1, 'Harbour');
insert into stations (organization_id, filial_id, name, currency) values (1, 1, 'Counter 1', 'EUR');
insert into devices (organization_id, station_id, name, kind, capabilities, status, enrolled_at)
  values (1, 1, 'Till', 'smart_pos_companion', '{}', 'active', now());
insert into device_credentials (organization_id, device_id, credential_hash, scopes)
  values (1, 1, sha256('credential'), '{assignment:report}');
insert into registry_events (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id)
  values (1, 'owner', 1, 'Olga', 'device_enrolled', 'device', 1);
insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
  values (1, 1, 1, 'EUR', 1250, 1), (1, 1, 2, 'EUR', 1250, 1);
insert into order_lines (order_id, ordinal, name, quantity, unit_amount_minor) values (1, 0, 'Soup', 1, 1250);
insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
  values (1, 1, 'emvco_generic', 'live', 'Bank', '{"merchant_account": {"guid": "com.bank", "merchant_id": "M-1"}}');
insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference, account,
    account_scheme, amount_minor, currency, expires_at, status, asked_until, paid_reference, paid_money_name, paid_at)
  values (1, 1, 1, 1, 1, 'OURS', 'M-1', 'com.bank', 1250, 'EUR', now(), 'ready', now(), 'T-1',
    '[1, "emvco_generic", "live", ["com.bank", "M-1"], "money:T-1"]', now());
insert into provider_issues (organization_id, config_id, kind, status, money_key, money_names, station_id, intent_id,
    amount_minor, currency, provider_reference, evidence, resolved_at, resolved_by, reason, transaction_id)
  values
    (1, 1, 'amount_mismatch', 'attributed', 'money:T-2', '{a}', 1, 1, 1240, 'EUR', 'T-2', '{"registered": {"amountMinor": "1250"}}', now(), 1, 'short', 1),
    (1, 1, 'amount_mismatch', 'open', 'money:T-2', '{a}', 1, 1, 1230, 'EUR', 'T-2', '{"registered": {"amountMinor": "1250"}}', null, null, null, null),
    (1, 1, 'amount_mismatch', 'open', 'money:T-3', '{b}', 1, 1, 1260, 'EUR', 'T-3', '{"registered": {"amountMinor": "1250"}}', null, null, null, null),
    (1, 1, 'amount_mismatch', 'open', 'money:T-4', '{c}', 1, 1, null, null, 'T-4', '{"registered": {"amountMinor": "1250"}}', null, null, null, null),
    (1, 1, 'unmatched_money', 'closed', 'money:T-5', '{provider:1:money:T-5}', null, null, 1250, 'EUR', 'T-5', '{}', now(), 1, 'paid back', null);
select settle_intent(1, 'attestation-1', 1, 1, 'dynamic_qr', 1250, 'EUR', 'T-1', 1, 'provider:1:money:T-1');
select settle_intent(2, 'attestation-2', 1, 1, 'cash', 1250, 'EUR', '', 1);
insert into audit_heads (station_id, version, stream_sequence) values (1, 9, 9);
insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind, actor_id,
    actor_name, data, machine_version, stream_sequence)
  values (1, 9, 0, 1, 1, now(), 'intent_succeeded', 'cashier', 1, 'Casey', '{}', 1, 9);
insert into intent_history (intent_id, station_id, organization_id, version, at, intent) values (1, 1, 1, 9, now(),
  '{"intentId":1,"displayNumber":1,"route":"dynamic_qr","orderId":1,"orderDisplayNumber":1,"orderRevision":1,"amountMinor":"1250","currency":"EUR","stationName":"Counter 1","deviceId":null,"handoffTarget":"","createdBy":1,"createdAtMs":1795262582000,"expiresAtMs":1795262762000,"presentedAtMs":null,"reports":[],"reportCount":0,"attestation":{"by":"cashier","commandId":"attestation-1","cashierId":1,"cashierName":"Casey","reference":"T-1","atMs":1795262583000,"transactionId":1},"endedAtMs":1795262584000,"status":"succeeded","provider":{"configId":1,"qrPayload":"","providerReference":"T-1","confirmedAtMs":1795262583000},"endReason":"","moneyMayHaveMoved":"","reasonSinceEnd":"","cancelKey":"","formerReports":[]}');
insert into outbox (key, kind, payload) values ('station.1', 'station_command', '{"type": "order_shown"}');
