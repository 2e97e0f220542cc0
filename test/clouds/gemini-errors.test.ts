/** Failures of Gemini as clients get them (wire/gemini.md §11: 11, 25, 27–30, 32, 38). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { geminiUpstream } from '../../src/dialects/gemini/upstream.ts';
import { clientDialects } from '../support/dialects.ts';
import { whyOmitted } from '../recordings/recorded.ts';
import { geminiDocument, geminiStream } from '../upstream/gemini.ts';
import type { Answer } from '../upstream/scripted.ts';
import { callGemini, geminiKey, startGemini, type GeminiScene } from './gemini-scene.ts';

let scene: GeminiScene;
before(async () => {
  scene = await startGemini();
});
after(() => scene.stop());

const folder = join(import.meta.dirname, '../../../shared/recordings/gemini');

function recorded(name: string, status: number): Answer {
  return { status, body: readFileSync(join(folder, `${name}.json`), 'utf8') };
}

function refusal(
  code: number,
  status: string,
  message: string,
  details: readonly JsonObject[] = [],
): Answer {
  return {
    status: code,
    body: JSON.stringify({
      error: { code, message, status, ...(details.length > 0 ? { details } : {}) },
    }),
  };
}

describe('recorded errors', { skip: whyOmitted ?? false }, () => {
  it('11 32 a refused request is reported in the words of the service, in a list or not', async () => {
    for (const [name, words] of [
      ['reported-400-missing-signature.array', /missing a thought_signature/],
      ['reported-400-function-response-count', /number of function response parts/],
    ] as const) {
      for (const dialect of clientDialects) {
        const model = `gemini-3-${name}-${dialect}`;
        const { reply, received } = await callGemini(
          scene,
          { dialect, model },
          recorded(name, 400),
        );
        assert.equal(reply.status, 400);
        assert.match(reply.text, words);
        assert.equal(received.length, 1);
      }
    }
  });

  it('27 a quota of a minute is waited for as long as is reported', async () => {
    const error = geminiUpstream.readError(
      429,
      String(recorded('google-429-retry-info', 429).body),
    );
    assert.equal(error.code, 'rate_limited');
    assert.equal(error.retryAfterMs, 34_400);
    const { reply } = await callGemini(
      scene,
      { model: 'gemini-3-429' },
      recorded('google-429-retry-info', 429),
    );
    assert.equal(reply.status, 429);
    assert.equal(reply.headers['retry-after'], '35');
  });

  it('28 a quota of a day is not asked for again soon', () => {
    const error = geminiUpstream.readError(
      429,
      String(recorded('reported-429-quota-failure', 429).body),
    );
    assert.equal(error.code, 'rate_limited');
    assert.equal(error.retryAfterMs, 600_000);
  });

  it('29 shared capacity that is used up is no limit of the account', () => {
    const error = geminiUpstream.readError(
      429,
      String(recorded('reported-429-vertex.array', 429).body),
    );
    assert.equal(error.code, 'overloaded');
  });
});

const rows: readonly (readonly [answer: Answer, code: string])[] = [
  [
    refusal(
      400,
      'INVALID_ARGUMENT',
      'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).',
    ),
    'context_overflow',
  ],
  [
    refusal(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
    ]),
    'upstream_auth',
  ],
  [
    refusal(400, 'INVALID_ARGUMENT', 'Something is wrong with it.', [
      { reason: 'API_KEY_INVALID' },
    ]),
    'upstream_auth',
  ],
  [
    refusal(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
    'upstream_auth',
  ],
  [refusal(400, 'OUT_OF_RANGE', 'Out of range.'), 'upstream_rejected'],
  [
    refusal(
      400,
      'INVALID_ARGUMENT',
      'The specified schema produces a constraint that has too many states for serving.',
    ),
    'upstream_rejected',
  ],
  [
    refusal(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.'),
    'upstream_auth',
  ],
  [
    refusal(403, 'PERMISSION_DENIED', 'Generative Language API has not been used.', [
      { reason: 'SERVICE_DISABLED' },
    ]),
    'upstream_auth',
  ],
  [
    refusal(404, 'NOT_FOUND', 'models/gemini-x is not found for API version v1beta.'),
    'model_not_found',
  ],
  [
    refusal(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded for metric: x, limit: 0, model: gemini-x'),
    'upstream_auth',
  ],
  [refusal(499, 'CANCELLED', 'The operation was cancelled.'), 'upstream_unavailable'],
  [refusal(500, 'INTERNAL', 'An internal error has occurred.'), 'upstream_unavailable'],
  [refusal(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'), 'overloaded'],
  [
    refusal(504, 'DEADLINE_EXCEEDED', 'Deadline expired before operation could complete.'),
    'timeout',
  ],
];

describe('errors', () => {
  it('30 each status of google.rpc has its code', () => {
    for (const [answer, code] of rows) {
      const error = geminiUpstream.readError(answer.status ?? 0, String(answer.body));
      assert.equal(error.code, code, String(answer.body));
    }
  });

  it("30 an invalid key is the operator's matter: told without the words of the service", async () => {
    const answer = refusal(400, 'INVALID_ARGUMENT', `API key not valid: ${geminiKey}`, [
      { reason: 'API_KEY_INVALID' },
    ]);
    const { reply } = await callGemini(scene, { model: 'gemini-3-key' }, answer);
    assert.match(reply.text, /"code":"upstream_auth"/);
    assert.doesNotMatch(reply.text, /canary/);
  });

  it('38 a schema that the service cannot serve is passed on', async () => {
    const answer = refusal(
      400,
      'INVALID_ARGUMENT',
      'The specified schema produces a constraint that has too many states for serving.',
    );
    const { reply, received } = await callGemini(scene, { model: 'gemini-3-states' }, answer);
    assert.equal(reply.status, 400);
    assert.match(reply.text, /too many states for serving/);
    assert.equal(received.length, 1);
  });

  it('25 an error in a stream is an error: repeated before content, told behind it', async () => {
    const error = {
      error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' },
    };
    const text = { candidates: [{ content: { role: 'model', parts: [{ text: 'so far' }] } }] };
    for (const dialect of clientDialects) {
      const early = await callGemini(
        scene,
        { dialect, model: `gemini-3-early-${dialect}`, stream: true },
        geminiStream([error]),
        geminiStream([geminiDocument()]),
      );
      assert.equal(early.reply.status, 200);
      assert.equal(early.received.length, 2);
      assert.match(early.reply.text, /ok/);
      const late = await callGemini(
        scene,
        { dialect, model: `gemini-3-late-${dialect}`, stream: true },
        geminiStream([text, error]),
      );
      assert.equal(late.received.length, 1);
      assert.match(late.reply.text, /so far[^]*overloaded/);
      assert.doesNotMatch(late.reply.text, /\[DONE\]|message_stop|response\.completed/);
    }
  });

  it('25 26 a list in the place of a response object is never an answer', async () => {
    const list = [{ error: { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' } }];
    const inStream: Answer = { body: [`data: ${JSON.stringify(list)}\n\n`], framing: 'chunked' };
    const first = await callGemini(scene, { model: 'gemini-3-list', stream: true }, inStream);
    assert.equal(first.reply.status, 429);
    const chunks = JSON.stringify([geminiDocument()]);
    for (const stream of [false, true]) {
      const { reply } = await callGemini(
        scene,
        { model: `gemini-3-array-${String(stream)}`, stream },
        { body: chunks },
      );
      assert.equal(reply.status, 502);
    }
  });

  it('25 an error in a document with status 200 is that error', async () => {
    const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' };
    const { reply } = await callGemini(
      scene,
      { model: 'gemini-3-doc-error' },
      { body: JSON.stringify({ error }) },
    );
    assert.equal(reply.status, 503);
    assert.match(reply.text, /overloaded/);
  });
});
