/** `audit`: who changed what, and whether the log of it was tampered with. */
import { isObject, type JsonObject } from '../../json/value.ts';
import { commandOf, type Action, type Command, type CommandContext } from '../command.ts';
import type { Arguments } from '../arguments.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import { columns } from '../table.ts';

const help = `Usage: model-gateway audit list|check [options]

  audit list    list changes of keys, teams, tags and settings, newest first
  audit check   verify the hash chain of the log; exits with 1 if it is broken

Each has --help. They talk to the running gateway, or use its data directory if
no gateway runs.
`;

const listHelp = `Usage: model-gateway audit list [--limit N] [--subject SUBJECT] [--json]

  --limit N           maximum number of entries, 1 to 1000; default: 50
  --before SEQ        only entries before this number
  --subject SUBJECT   only entries of this subject, e.g. key:a1b2c3d4 or
                      team:research
  --json              an array with the values before and after each change
`;

const checkHelp = `Usage: model-gateway audit check [--json]

Each entry contains a hash over itself and the previous hash. The hash of the
newest entry is printed. The gateway's log (event "audit") has it, too; compare
both to find out whether entries were cut off at the end.
`;

export const auditCommand: Command = commandOf(
  { name: 'audit', summary: 'list administrative changes, or verify that list', help },
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
  const rows = entries.map((entry: JsonObject) =>
    names.map((name) => cell(entry[name]) + (name === 'action' ? outcomeOf(entry) : '')),
  );
  const head = names.map((name) => name.toUpperCase());
  context.stdout(
    rows.length === 0
      ? 'There are no entries.\n'
      : columns([head, ...rows], { head: true, screen: context.screen, whole: [...names.keys()] }),
  );
}

/** A reload is noted whether or not it was applied. */
function outcomeOf({ after }: JsonObject): string {
  if (!isObject(after) || typeof after['applied'] !== 'boolean') return '';
  return after['applied'] ? ' (applied)' : ' (refused)';
}

async function check(given: Arguments, context: CommandContext): Promise<number> {
  const admin = await context.admin();
  const found = requireOk(await admin.request('GET', '/api/audit/check'));
  const intact = found['intact'] === true;
  if (given.has('json')) context.stdout(jsonText(found));
  else if (intact) {
    context.stdout(`${cell(found['entries'])} entries; the hash chain is intact.\n`);
    if (found['head'] !== null) context.stdout(`Newest hash: ${cell(found['head'])}.\n`);
  } else if (found['broken_at'] === null) {
    const missing = isObject(found['missing']) ? found['missing'] : {};
    context.stderr(
      `The end of the log was cut off: entry ${cell(missing['seq'])} with the hash ${cell(missing['hash'])} is missing. This is expected after restoring a backup. Otherwise, look for the entry in a backup or in the gateway's log (event "audit").\n`,
    );
  } else {
    context.stderr(
      `The log was changed: entry ${cell(found['broken_at'])} does not match its hash. Compare it with a backup or with the gateway's log (event "audit").\n`,
    );
  }
  return intact ? 0 : 1;
}
