/** What must be true of every history, whatever happened in it. */
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import type { CallRow, Spent } from '../../src/store/calls.ts';
import type { Heard, Response } from './client.ts';
import type { Instance, Told } from './instance.ts';
import { promptTokens, type Fault } from './replies.ts';
import type { Served } from './upstream.ts';

/** A killed process, and the reports that it had received by then. */
export interface Death {
  readonly at: number;
  readonly told: Told;
  /** The disk worked in the time before: what is old enough must be on it. */
  readonly trusted: boolean;
  readonly ledgerMs: number;
}

export interface Account {
  readonly heard: readonly Heard[];
  readonly served: readonly Served[];
  readonly rows: readonly CallRow[];
  readonly deaths: readonly Death[];
  readonly instances: readonly Instance[];
  /** Keys that were revoked. */
  readonly revoked: ReadonlySet<string>;
  readonly spent: ReadonlyMap<string, number>;
  readonly booked: readonly Spent[];
}

type Complain = (what: string) => void;

export function judge(account: Account, complain: Complain): void {
  for (const heard of account.heard) judgeAnswer(heard, account, complain);
  judgeRows(account, complain);
  judgeMoney(account, complain);
}

/** How an answer ended, as the client can tell. */
type Ending = 'document' | 'refused' | 'finished' | 'error frame' | 'cut' | 'nothing';

function judgeAnswer(heard: Heard, account: Account, complain: Complain): void {
  const { ask, response } = heard;
  const say = (what: string): void =>
    complain(`call ${ask.call} (${ask.dialect}, ${ask.model}): ${what}`);
  const ending = endingOf(heard, say);
  const row = rowOf(heard, account);
  const died = account.deaths.length > 0;
  if (!heard.left && !heard.closed && response?.complete !== true) {
    if (ask.stops !== Number.POSITIVE_INFINITY) say('still waits at the end of all time');
  }
  const succeeded = ending === 'document' || ending === 'finished';
  if (succeeded && response !== undefined) {
    judgeSuccess(heard, account, say);
    if (row === undefined && !died) say('succeeded without a row');
    // What the client had whole, the ledger calls a success; a crash may come in between.
    if (row !== undefined && row.outcome !== 'ok' && !died)
      say(`succeeded, and its row is ${row.outcome}`);
  } else if (row?.outcome === 'ok' && !heard.left && !died && ask.stops === undefined) {
    say(`its row says ok, and the client saw: ${ending}`);
  }
}

function endingOf({ ask, response, left }: Heard, say: Complain): Ending {
  if (response === undefined) return 'nothing';
  if (response.surplus > 0) say(`${response.surplus} bytes behind the end of the answer`);
  const stream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!stream) {
    if (!response.complete) return 'cut';
    const body = tryParseObject(response.body);
    if (body === undefined) say(`a body that is no JSON: ${response.body.slice(0, 80)}`);
    if (response.status !== 200 && !isObject(body?.['error'])) say('a failure without an error');
    if (response.status === 200 && body?.['error'] !== undefined) say('an error with status 200');
    if (response.status === 200 && ask.stream) say('a document for a stream');
    return response.status === 200 ? 'document' : 'refused';
  }
  return streamEnding(response, { ask, left }, say);
}

function streamEnding(
  response: Response,
  { ask, left }: Pick<Heard, 'ask' | 'left'>,
  say: Complain,
): Ending {
  const frames = response.body.split('\n\n').filter((frame) => frame.trim() !== '');
  const whole = response.complete ? frames : frames.slice(0, -1);
  const ends = whole.filter((frame) =>
    ask.dialect === 'chat' ? frame === 'data: [DONE]' : frame.startsWith('event: message_stop'),
  );
  const errors = whole.filter((frame) =>
    ask.dialect === 'chat' ? frame.startsWith('data: {"error"') : frame.startsWith('event: error'),
  );
  if (ends.length + errors.length > 1) say(`${ends.length} ends and ${errors.length} errors`);
  const [last] = [...ends, ...errors];
  if (last !== undefined && whole.at(-1) !== last) say(`something behind the end: ${whole.at(-1)}`);
  if (response.complete && last === undefined && !left)
    say('closed without an ending: a false success');
  if (errors.length > 0) return 'error frame';
  return ends.length > 0 ? 'finished' : 'cut';
}

/** What the client has is what one provider said, all of it; and the row counts what that provider counted. */
function judgeSuccess(heard: Heard, account: Account, say: Complain): void {
  const { ask, response } = heard;
  if (response === undefined) return;
  const text = ask.stream ? streamText(response.body) : documentText(response.body);
  const mine = account.served.filter(({ call }) => call === ask.call);
  const source = mine.find(({ said }) => said.text === text);
  if (source === undefined) {
    say(`heard "${text}", which nobody said: ${mine.map(({ said }) => said.text).join('; ')}`);
    return;
  }
  const row = rowOf(heard, account);
  if (row === undefined || row.outcome !== 'ok') return;
  if (row.usageSource === 'estimated') {
    if (reporting.has(source.fault)) say('usage that was reported is called an estimate');
    return;
  }
  const { output } = source.said;
  const { freshInputTokens = 0, outputTokens } = row.charged;
  if (outputTokens !== output || freshInputTokens !== promptTokens) {
    say(`charged ${freshInputTokens}+${outputTokens}, counted ${promptTokens}+${output}`);
  }
}

/** What breaks behind the finish may take the usage with it; these do not. */
const reporting: ReadonlySet<Fault> = new Set([
  'ok',
  'drip',
  'end-of-connection',
  'more-behind-end',
  'other-form',
  'no-terminator',
]);

function rowOf({ ask, response }: Heard, { rows }: Account): CallRow | undefined {
  const id = response?.headers.get('x-request-id');
  return rows.find((row) => (id === undefined ? row.user === `c${ask.call}` : row.id === id));
}

function judgeRows({ rows, instances, deaths, heard }: Account, complain: Complain): void {
  const due = instances.reduce((sum, { told }) => sum + told.due, 0);
  const written = new Set(rows.map(({ id }) => id));
  if (written.size !== rows.length) complain('a call has two rows');
  const died = new Map(deaths.map((death) => [death.told, death]));
  for (const { told } of instances) {
    const death = died.get(told);
    for (const [id, at] of told.recorded) {
      const sure = death === undefined || (death.trusted && death.at - at > death.ledgerMs);
      if (sure && !written.has(id)) complain(`the row of ${id} is lost`);
    }
    for (const [id, at] of told.running) {
      const sure = death?.trusted === true && death.at - at > death.ledgerMs;
      if (sure && !written.has(id)) complain(`the running call ${id} is forgotten`);
    }
    if (death === undefined && told.recorded.size !== told.due) {
      complain(`${told.due} calls and ${told.recorded.size} rows`);
    }
  }
  if (rows.length > due) complain(`${rows.length} rows of ${due} calls`);
  for (const { user } of rows) {
    if (user !== undefined && rows.filter((row) => row.user === user).length > 1) {
      complain(`${user} has two rows`);
    }
  }
  const asked = heard.length;
  if (due > asked) complain(`${due} calls were admitted of ${asked}`);
}

/** A second request ran beside the first one and was let go. */
export function isHedged({ notes }: CallRow): boolean {
  return notes?.includes('a second request that was cancelled') === true;
}

function judgeMoney({ rows, spent, booked }: Account, complain: Complain): void {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const { cost, budgets, attempts, outcome, charged } = row;
    if (isHedged(row) && attempts < 2) complain('a hedged call of one attempt');
    // A canceled upstream had the prompt by then, and is paid for it.
    if (isHedged(row) && (cost?.total ?? 0) === 0) complain('a hedge that costs nothing');
    if (attempts > 3) complain(`a call of ${attempts} attempts`);
    if (attempts === 0 && outcome !== 'canceled' && (charged.outputTokens ?? 0) > 0) {
      complain('a call that nobody answered is charged');
    }
    for (const { counter, window } of budgets) {
      const name = `${counter} ${window}`;
      sums.set(name, (sums.get(name) ?? 0) + (cost?.total ?? 0));
    }
  }
  for (const [name, sum] of sums) {
    const inLedger = booked.find(({ counter, window }) => `${counter} ${window}` === name);
    if (inLedger?.nanodollars !== sum) {
      complain(`${name}: the rows cost ${sum}, the book says ${inLedger?.nanodollars}`);
    }
    const counted = spent.get(name);
    // A process that never drew on it has not asked what is spent there.
    if (counted !== undefined && counted !== sum) {
      complain(`${name}: the rows cost ${sum}, the counter says ${counted}`);
    }
  }
}

function documentText(body: string): string {
  const json = tryParseObject(body) ?? {};
  const choices: unknown = json['choices'];
  const content: unknown = json['content'];
  if (Array.isArray(choices)) {
    const message: unknown = isObject(choices[0]) ? choices[0]['message'] : undefined;
    return isObject(message) ? String(message['content']) : '';
  }
  return Array.isArray(content)
    ? content.map((block: unknown) => (isObject(block) ? String(block['text']) : '')).join('')
    : '';
}

function streamText(body: string): string {
  let text = '';
  for (const line of body.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const json = tryParseObject(line.slice(6)) ?? {};
    const choices: unknown = json['choices'];
    const delta: unknown = json['delta'];
    const inner: unknown =
      Array.isArray(choices) && isObject(choices[0]) ? choices[0]['delta'] : undefined;
    if (isObject(inner) && typeof inner['content'] === 'string') text += inner['content'];
    if (isObject(delta) && typeof delta['text'] === 'string') text += delta['text'];
  }
  return text;
}
