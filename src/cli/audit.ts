/** `audit`: who changed what, and whether the log of it was tampered with. */
import { isObject, type JsonObject } from '../json/value.ts';
import { commandOf, type Action } from './actions.ts';
import type { Arguments } from './arguments.ts';
import type { Command, CommandContext } from './command.ts';
import { cell, jsonText, objectsOf, requireOk } from './reply.ts';
import { columns } from './table.ts';

const help = `Usage: model-gateway audit list|check [options]

  audit list    list who changed keys, teams, tags and settings, newest first
  audit check   prove that the log is as it was written; exit code 1 when it is not

Each has --help. They act on the running gateway, or on its data directory when none runs.
`;

const listHelp = `Usage: model-gateway audit list [--limit N] [--subject SUBJECT] [--json]

  --limit N           entries at most, 1 to 1000; default: 50
  --before SEQ        only entries before this number
  --subject SUBJECT   only of this, e.g. key:a1b2c3d4 or team:research
  --json              an array with what was before and after each change
`;

const checkHelp = `Usage: model-gateway audit check [--json]

Each entry holds a hash over itself and the hash before it. The hash of the newest one is printed: the
gateway's log (event "audit") has it, too, so that entries cut off at the end show as well.
`;

export const auditCommand: Command = commandOf(
  { name: 'audit', summary: 'show who changed what, and prove that log', help },
  new Map<string, Action>([
    [
      'list',
      {
        help: listHelp,
        form: { values: ['limit', 'before', 'subject'], switches: ['json'] },
        run: list,
      },
    ],
    ['check', { help: checkHelp, form: { switches: ['json'] }, run: check }],
  ]),
);

async function list(given: Arguments, context: CommandContext): Promise<void> {
  const query = new URLSearchParams({ limit: given.value('limit') ?? '50' });
  for (const name of ['before', 'subject']) {
    const value = given.value(name);
    if (value !== undefined) query.set(name, value);
  }
  const admin = await context.admin();
  const answer = requireOk(await admin.request('GET', `/api/audit?${query.toString()}`));
  const entries = objectsOf(answer, 'entries');
  if (given.has('json')) {
    context.stdout(jsonText(entries));
    return;
  }
  const names = ['seq', 'at', 'actor', 'ip', 'action', 'subject'];
  const rows = entries.map((entry: JsonObject) => names.map((name) => cell(entry[name])));
  const head = names.map((name) => name.toUpperCase());
  context.stdout(
    rows.length === 0
      ? 'Nothing was changed.\n'
      : columns([head, ...rows], { head: true, screen: context.screen }),
  );
}

async function check(given: Arguments, context: CommandContext): Promise<number> {
  const admin = await context.admin();
  const found = requireOk(await admin.request('GET', '/api/audit/check'));
  const intact = found['intact'] === true;
  if (given.has('json')) context.stdout(jsonText(found));
  else if (intact) {
    context.stdout(`${cell(found['entries'])} entries, as they were written.\n`);
    if (found['head'] !== null) context.stdout(`The newest has the hash ${cell(found['head'])}.\n`);
  } else if (found['broken_at'] === null) {
    const missing = isObject(found['missing']) ? found['missing'] : {};
    context.stderr(
      `The end of the log was cut off: entry ${cell(missing['seq'])} with the hash ${cell(missing['hash'])} was there and is not. If you restored a backup, that is why; else a backup and the gateway's log (event "audit") tell what it was.\n`,
    );
  } else {
    context.stderr(
      `The log was changed: entry ${cell(found['broken_at'])} is not what was written. A backup and the gateway's log (event "audit") tell what it was.\n`,
    );
  }
  return intact ? 0 : 1;
}
