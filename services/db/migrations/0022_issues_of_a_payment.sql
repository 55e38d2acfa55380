-- A payment's timeline tells what became of its money, whether the issue is open or not.
create index provider_issues_by_intent on provider_issues (intent_id) where intent_id is not null;
