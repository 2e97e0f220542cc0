/** Up to when what the calls of a key said is forgotten: a call that ran meanwhile keeps nothing. */
export const forgottenContents = `
CREATE TABLE forgotten_contents (
  key_id TEXT PRIMARY KEY,
  before INTEGER NOT NULL
) STRICT;
`;
