/** One fault row as one dialect, upstream and shape play it, with a provider and a key of its own. */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { inNoonZone } from '../support/noon.ts';
import { listAt, type AnyDialect } from '../support/reading.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { providerAt } from '../support/gateway.ts';
import { impatience, startRig, type Rig } from '../support/rig.ts';
import type { Script } from '../upstream/scripted.ts';
import type { FaultRow, LedgerCode, Outcome, Shape } from './fault-row.ts';

/** What is not to run out stays long: a busy machine is slow. */
const times = {
  'to begin': impatience,
  'to go on': { first_event: '30s', document: '30s', idle: impatience.idle },
  'to drip': { first_event: '30s', document: '30s', idle: '1500ms' },
} as const;

export interface Case {
  /** Of its provider, which shares neither retries nor health with any other. */
  readonly provider: string;
  readonly row: FaultRow;
  readonly dialect: AnyDialect;
  readonly upstream: UpstreamDialect;
  readonly mode: 'relay' | 'translate';
  readonly shape: Shape;
}

/** Tokens of an answer, unless the row says otherwise; they cost 10 $ a million. */
export const cap = 100;
export const nanodollarsOfToken = 10_000;

/** All that a row is played in. */
export function casesOf(rows: readonly FaultRow[]): readonly Case[] {
  const cases: Case[] = [];
  for (const dialect of clientDialects) {
    for (const upstream of upstreamDialects) {
      const mode = dialect === upstream ? 'relay' : 'translate';
      for (const row of rows) {
        if (![row.upstream ?? upstream].flat().includes(upstream)) continue;
        if (row.mode !== undefined && row.mode !== mode) continue;
        for (const shape of row.shapes ?? (['stream', 'document'] as const)) {
          cases.push({ provider: `case-${cases.length}`, row, dialect, upstream, mode, shape });
        }
      }
    }
  }
  return cases;
}

export function outcomeOf({ row, shape }: Case): Outcome {
  return (shape === 'document' ? row.documentOutcome : undefined) ?? row.outcome;
}

/** Of these, documents are asked for as streams. */
const collecting: ReadonlySet<UpstreamDialect> = new Set(['messages', 'gemini']);

export function attemptsOf({ row, shape, dialect, upstream }: Case): number {
  const { attempts = 1 } = row;
  if (typeof attempts === 'number') return attempts;
  const collected = shape === 'document' && dialect !== upstream && collecting.has(upstream);
  return attempts[collected ? 'collected' : shape];
}

const usualCodes = { refused: 'L0', broken: 'LP', served: 'LX' } as const;

export function ledgerCodeOf(at: Case): LedgerCode {
  return at.row.ledger ?? usualCodes[outcomeOf(at).kind];
}

/** A gateway with the provider of each case; no wait between tries is left to chance. */
export function startCases(cases: readonly Case[]): Promise<Rig> {
  const wanted = (upstreams: Rig['upstreams']): JsonObject =>
    Object.fromEntries(
      cases.map(({ provider, upstream, row }) => [
        provider,
        providerAt(
          upstream,
          upstreams[upstream].port,
          row.impatient === undefined ? {} : { timeouts: times[row.impatient] },
        ),
      ]),
    );
  const prices = Object.fromEntries(
    cases.map(({ provider, row }) => [
      `${provider}/*`,
      { input: row.pricedPrompt ? 10 : 0, output: 10 },
    ]),
  );
  return startRig((upstreams) => ({ providers: wanted(upstreams), prices }), { random: () => 0 });
}

export interface PlayedCase {
  readonly model: string;
  readonly script: Script;
  readonly key: string;
  /** Nanodollars that the ledger has booked on the key's budget. */
  spent(): Promise<number>;
}

/**
 * Sets the case's script, and makes a key for its calls alone: one at a time, on a budget that has room for
 * one reservation. What a call did not give back at its end would refuse the next one.
 */
export async function playCase(
  rig: Rig,
  { provider, row, upstream, shape }: Case,
  contentSeen: Promise<void>,
): Promise<PlayedCase> {
  if (row.resetsUpload) rig.upstreams[upstream].resetUploads(provider);
  const script = rig.upstreams[upstream].script(provider, () =>
    row.play(upstream, shape === 'stream', contentSeen),
  );
  const admin = async (method: string, path: string, body?: JsonObject): Promise<JsonObject> => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const reply = await send(rig.gateway.adminUrl + path, body, { method, headers });
    assert.ok(reply.status < 300, reply.text);
    return reply.json;
  };
  const budget = row.budget ?? String((1.6 * cap * nanodollarsOfToken) / 1e9);
  const limits = inNoonZone({ concurrent: 1, budget, per: 'day', shrink: false });
  const made = await admin('POST', '/api/keys', { name: provider, models: ['*'], ...limits });
  return {
    model: `${provider}/${provider}`,
    script,
    key: String(made['key']),
    spent: async () => {
      const shown = await admin('GET', `/api/keys/${String(made['id'])}`);
      return Math.round(Number(listAt(shown, 'budgets')[0]?.['spent_usd']) * 1e9);
    },
  };
}
