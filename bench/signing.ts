/**
 * `node bench/signing.ts`: CPU time of one signature of AWS, for a body of 1.4 KB and one of 100 KB (issue 22). Alone, in a
 * loop, by the code that signs calls (`src/providers/credentials/aws-signature.ts`). Fails where a budget is missed.
 */
import { Pieces } from '../src/json/pieces.ts';
import { Secret } from '../src/core/secret.ts';
import { AwsSignature } from '../src/providers/credentials/aws-signature.ts';
import { requestBody } from './bodies.ts';

const rows = [
  { bytes: 1400, count: 40_000, budgetUs: 30 },
  { bytes: 100_000, count: 4000, budgetUs: 400 },
] as const;
const rounds = 5;

const keys = {
  accessKeyId: 'AKIABENCH0123456789',
  secretAccessKey: new Secret('bench-secret'),
  sessionToken: new Secret('t'.repeat(400)),
};
const signature = new AwsSignature({ region: 'eu-central-1', service: 'bedrock' });

/** CPU of one, in µs. */
function measure(bytes: number, count: number): number {
  const body = Pieces.of(
    Buffer.from(requestBody('anthropic-messages', 'm', { kind: 'unary', bytes })),
  );
  const request = {
    method: 'POST',
    origin: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
    path: '/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream',
    headers: ['content-type', 'application/json'],
    body,
  } as const;
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) signature.headersFor(request, keys, 1_767_225_600_000 + i * 1000);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

let missed = false;
for (const { bytes, count, budgetUs } of rows) {
  measure(bytes, count);
  const all = Array.from({ length: rounds }, () => measure(bytes, count)).toSorted((a, b) => a - b);
  const median = all[Math.floor(rounds / 2)] ?? 0;
  missed ||= median > budgetUs;
  const spread = `${all[0]?.toFixed(1)} to ${all.at(-1)?.toFixed(1)}`;
  process.stdout.write(
    `${bytes} bytes: ${median.toFixed(1)} µs (${spread}), budget ${budgetUs} µs\n`,
  );
}
if (missed) process.exitCode = 1;
