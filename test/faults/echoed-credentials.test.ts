/** S14: an upstream that quotes the request it got, in every place where its words reach a client. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { converseErrorBody } from '../upstream/converse.ts';
import { geminiErrorBody } from '../upstream/gemini.ts';
import { errorIn } from '../upstream/reply.ts';
import type { Received, Scripted } from '../upstream/scripted.ts';
import { begun, frame, type Bytes } from './stream-pieces.ts';

/** As the rig configures them: no pattern of any vendor fits. */
const keys: { readonly [D in UpstreamDialect]: string } = {
  chat: 'upstream-chat-key',
  messages: 'upstream-messages-key',
  responses: 'upstream-responses-key',
  gemini: 'upstream-gemini-key',
  converse: 'upstream-converse-key',
};

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function quote({ headerLines }: Received): string {
  return `cannot read ${JSON.stringify(Object.fromEntries(headerLines))}`;
}

function errorFrame(upstream: UpstreamDialect, message: string): Bytes {
  const error = { message, type: 'invalid_request_error', code: null };
  const errors: { readonly [D in UpstreamDialect]: JsonObject } = {
    chat: { error },
    messages: { type: 'error', error },
    responses: { type: 'error', error },
    gemini: geminiErrorBody(message, 400),
    converse: converseErrorBody(message, 400),
  };
  return frame(upstream, errors[upstream]);
}

const places: { readonly [name: string]: (upstream: UpstreamDialect) => Scripted } = {
  'in an error answer': (upstream) => (request) => errorIn(upstream, 400, quote(request)),
  'in one that is cut within the key': (upstream) => (request) => {
    const value = `${'.'.repeat(2038)}${keys[upstream]}`;
    return errorIn(upstream, 400, request.path === '' ? '' : value);
  },
  'in the first event': (upstream) => (request) => ({
    body: [errorFrame(upstream, quote(request))],
    framing: 'chunked',
  }),
  'in the middle of a stream': (upstream) => (request) => ({
    body: [begun(upstream), errorFrame(upstream, quote(request))],
    framing: 'chunked',
  }),
};

for (const [place, scripted] of Object.entries(places)) {
  for (const upstream of upstreamDialects) {
    for (const dialect of clientDialects) {
      test(`${place}: ${dialect} on ${upstream}`, async () => {
        const { model } = rig.play(upstream, scripted(upstream));
        const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
        assert.match(reply.text, /"error"/);
        assert.doesNotMatch(reply.text, new RegExp(keys[upstream].slice(0, 12)));
      });
    }
  }
}
