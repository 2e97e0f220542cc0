/** Conversions as text, for goldens. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Reply } from '../support/http.ts';
import type { Received } from '../upstream/scripted.ts';
import { laidOut } from './golden.ts';

/** Reasons of notes and messages of errors, which stand in a golden of their own. */
export const sentences = new Set<string>();

export interface Answered {
  readonly status: number;
  readonly notes: string;
  readonly text: string;
}

/** The status and notes, and the upstream's body; the error where nothing was sent. */
export function outcome(
  asked: JsonObject,
  answered: Answered,
  arrived: JsonObject | undefined,
): string {
  const head = `${answered.status} ${answered.notes}`.trimEnd();
  if (arrived === undefined) {
    // The gateway's own count is an estimate that learns from earlier calls, whose settlement may come later.
    const text = settled(answered.text).replace(/"input_tokens":\d+/, '"input_tokens":"ESTIMATE"');
    return `${head}\n${text.trimEnd()}\n`;
  }
  const [sent, got] = [asked, arrived].map(({ model: _model, ...rest }) => laidOut(rest));
  return `${head}\n${sent === got ? 'as it was sent' : got}\n`;
}

/** What was noted of which member, without the reasons. */
export function notesOf({ headers }: Reply): string {
  const notes = String(headers['x-gateway-notes'] ?? '');
  return notes.replace(
    /(: (?:dropped|changed)), (.*?)(?=; [^;:]+: (?:dropped|changed)|$)/g,
    (_, kept: string, why: string) => {
      sentences.add(why);
      return kept;
    },
  );
}

/** Headers of every request, and those whose values are made anew for each. */
const usual = new Set(['host', 'content-length', 'x-request-id', 'connection', 'accept-encoding']);

/** The path and the headers that a vendor or a request may have otherwise. */
export function headOf({ path, headerLines }: Received): string {
  const lines = headerLines
    .filter(([name]) => !usual.has(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value.replace(/key-of-\S+/, 'KEY')}`);
  return [path, ...lines].join(', ');
}

/** Without ids, times and seals that are made anew for each call, and without the messages of errors. */
export function settled(text: string): string {
  return text
    .replace(
      /"(chatcmpl-|msg_|req_|call_|toolu_|resp_|rs_|fc_|ctc_|ws_|tsc_|lsh_|sh_|apc_|item_|fco_|ctco_|tsco_|lsho_|sho_|apco_)[A-Za-z0-9_-]{8,}"/g,
      '"$1NEW"',
    )
    .replace(/"(created|created_at|completed_at)":\d{6,}/g, '"$1":NOW')
    .replace(/(gw1\.|gwr_\d+_\d+_)[\w.-]+/g, '$1SEAL')
    .replace(/"message":"((?:[^"\\]|\\.)*)"/g, (_, message: string) => {
      sentences.add(message);
      return '"message":"…"';
    });
}
