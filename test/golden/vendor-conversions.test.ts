/**
 * Freezes literally what each vendor gets of each request. What is right about it is proven by test/vendors; this test
 * shows every difference that a change makes. Vendors that get the same stand together.
 */
import { test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { endpointOf } from '../support/requests.ts';
import { startVendors } from '../support/vendors.ts';
import type { Received } from '../upstream/scripted.ts';
import { memberShapes, promiseShapes } from '../vendors/members.ts';
import { messagesVendors, type MessagesRules } from '../vendors/messages-rules.ts';
import { messagesShapes } from '../vendors/messages-shapes.ts';
import { shapes, type Shape } from '../vendors/shapes.ts';
import { startStrictVendors } from '../vendors/strict.ts';
import { vendors } from '../vendors/tables.ts';
import { headOf, notesOf, outcome, sentences } from './conversion-text.ts';
import { assertGolden } from './golden.ts';

test('requests of all shapes to vendors of the chat dialect', async (t) => {
  const strict = await startStrictVendors();
  t.after(() => strict.stop());
  const text = await table([...shapes, ...memberShapes, ...promiseShapes], vendors, {
    nameOf: ({ provider, model }) => `${provider}/${model}`,
    send: async (rules, shape) => {
      const script = strict.script(rules);
      const first = script.requests.length;
      const model = `${rules.provider}/${rules.model}`;
      const body = { model, ...shape.body };
      const reply = await send(strict.gateway.url + endpointOf[shape.dialect], body);
      return { reply, received: script.requests[first] };
    },
  });
  assertGolden(t, 'vendors-chat.txt', text);
});

test('requests of all shapes to servers of the messages dialect', async (t) => {
  const idOf = ({ config }: MessagesRules, i: number): string =>
    config === undefined ? 'anthropic' : `vendor${i}`;
  const declared = messagesVendors.map((rules, i) => {
    const { config = {} } = rules;
    return [idOf(rules, i), { speaks: 'messages' as const, config }] as const;
  });
  const rig = await startVendors(Object.fromEntries(declared));
  t.after(() => rig.stop());
  // Those of Responses clients are played by test/vendors/messages-vendors.test.ts.
  const shapes = messagesShapes.flatMap(({ dialect, ...shape }) =>
    dialect === 'responses' ? [] : [{ ...shape, dialect }],
  );
  const text = await table(shapes, messagesVendors, {
    nameOf: ({ name }) => name,
    send: (rules, shape) => {
      const id = idOf(rules, messagesVendors.indexOf(rules));
      return rig.ask(shape.dialect, { model: `${id}/${rules.model}`, ...shape.body });
    },
  });
  assertGolden(t, 'vendors-messages.txt', text);
});

test('the sentences of notes and errors', (t) => {
  assertGolden(t, 'vendors.prose.txt', `${[...sentences].toSorted().join('\n')}\n`);
});

interface Trial<Rules> {
  nameOf(rules: Rules): string;
  send(
    rules: Rules,
    shape: Shape,
  ): Promise<{ readonly reply: Reply; readonly received: Received | undefined }>;
}

/** For each shape what becomes of it, and at which vendors. */
async function table<Rules>(
  shapes: readonly Shape[],
  vendors: readonly Rules[],
  trial: Trial<Rules>,
): Promise<string> {
  let text = '';
  for (const shape of shapes) {
    const vendorsBy = new Map<string, string[]>();
    for (const rules of vendors) {
      const { reply, received } = await trial.send(rules, shape);
      const answered = { status: reply.status, notes: notesOf(reply), text: reply.text };
      const head = received === undefined ? '' : `${headOf(received)}\n`;
      const became = head + outcome(shape.body, answered, received?.json);
      const names = vendorsBy.get(became) ?? [];
      vendorsBy.set(became, [...names, trial.nameOf(rules)]);
    }
    text += `#### ${shape.dialect}: ${shape.name}\n`;
    for (const [became, names] of vendorsBy) text += `## ${names.join(', ')}\n${became}`;
    text += '\n';
  }
  return text;
}
