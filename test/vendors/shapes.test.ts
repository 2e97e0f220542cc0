/**
 * D13: every shape of request reaches every vendor and is answered: the vendors refuse what the real ones
 * refuse, nothing that they skip is sent to them, and a note names each change of a relayed request.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isInSample } from '../support/depth.ts';
import { send } from '../support/http.ts';
import { readDocument, readStream } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import { unnamedChanges } from './changes.ts';
import { unreadOf, type VendorRules } from './rules.ts';
import { shapes, type Shape } from './shapes.ts';
import { startStrictVendors, strictName, type StrictVendors } from './strict.ts';
import { vendors } from './tables.ts';

let strict: StrictVendors;
before(async () => {
  strict = await startStrictVendors();
});
after(() => strict.stop());

/** Whether the vendor can be shown what the shape holds. */
function isShowable({ images }: VendorRules, { image }: Shape): boolean {
  return image === undefined || images === 'url' || images === image;
}

async function reaches(rules: VendorRules, shape: Shape): Promise<void> {
  const script = strict.script(rules);
  const before = script.requests.length;
  const refusedBefore = strict.refusals(rules).length;
  const model = `${rules.provider}/${rules.model}`;
  const body = { model, ...shape.body };
  const reply = await send(strict.gateway.url + endpointOf[shape.dialect], body);
  if (!isShowable(rules, shape)) {
    assert.equal(reply.status, 400, reply.text);
    assert.equal(script.requests.length, before, 'nothing was sent');
    assert.match(reply.text, /image/);
    return;
  }
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(strict.refusals(rules).slice(refusedBefore), [], 'nothing was refused');
  assert.equal(script.requests.length, before + 1, 'asked once');
  const read = shape.body['stream'] === true ? readStream : undefined;
  const seen = read?.(shape.dialect, reply.text) ?? readDocument(shape.dialect, reply.json);
  assert.equal(seen.text, 'ok');
  assert.equal(seen.model, model, 'C4');
  const sent = script.requests[before]?.json ?? {};
  assert.deepEqual(unreadOf(rules, sent), [], 'what the vendor skips is not sent');
  if (reply.headers['x-gateway-mode'] !== 'relay') return;
  const notes = String(reply.headers['x-gateway-notes'] ?? '');
  assert.deepEqual(unnamedChanges(body, sent, notes), [], notes);
  const firm = await send(strict.gateway.url + endpointOf.chat, {
    ...body,
    model: strictName(rules.model),
  });
  assert.equal(firm.status, notes === '' ? 200 : 400, `strict: ${notes} ${firm.text}`);
  assert.equal(script.requests.length, before + (notes === '' ? 2 : 1), 'nothing was sent');
}

for (const [i, rules] of vendors.entries()) {
  describe(`${rules.provider}/${rules.model}`, () => {
    for (const shape of shapes.filter((_, j) => isInSample(i + j, 13))) {
      test(`D13 ${shape.dialect}: ${shape.name}`, () => reaches(rules, shape));
    }
  });
}
