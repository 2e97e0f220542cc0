/**
 * Gateways that count budgets in Redis, and how far each of them has told what the book does not know yet:
 * `asked` of `counter_mode` rises whenever the book must know all (counter-mode.ts).
 */
export const gateways = `
CREATE TABLE counter_gateways (
  tenant text COLLATE "C" NOT NULL,
  gateway text COLLATE "C" NOT NULL,
  told bigint NOT NULL,
  seen_at bigint NOT NULL,
  PRIMARY KEY (tenant, gateway)
);
ALTER TABLE counter_mode ADD COLUMN asked bigint NOT NULL DEFAULT 0;
`;
