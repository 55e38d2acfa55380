-- Which ENROLLMENT_CODE_KEY the registries use: the id of the key, or `none`. A registry with another key does not know their
-- enrollment codes. Null: the first registry that starts stores the id of its key.
alter table installation add column enrollment_code_key_id text;
