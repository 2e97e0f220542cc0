/** Up to when what the calls of a key said is forgotten: a call that ran meanwhile keeps nothing. */
export const forgottenContents = `
CREATE TABLE forgotten_contents (
  key_id text COLLATE "C" PRIMARY KEY,
  before bigint NOT NULL
);
`;
