/** How many sets of tags a key has is asked before one is added. */
export const groupsOfKey = 'CREATE INDEX usage_groups_key ON usage_groups (key_id)';
