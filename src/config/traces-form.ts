/** The form of `traces:` in `gateway.yaml`. */
import { z } from 'zod';
import { headerText } from './header-form.ts';
import { duration } from './time-form.ts';

const text = z.string().min(1, 'is empty').max(1024, 'has more than 1024 characters');

const pem = z.string().min(1, 'is empty').optional();

export const tracesForm = z
  .strictObject({
    endpoint: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe(
        'The collector: OTLP over HTTP with protobuf, e.g. http://127.0.0.1:4318; /v1/traces is added where no path is given. Default OTEL_EXPORTER_OTLP_ENDPOINT; without either there are no traces.',
      ),
    headers: z
      .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is no header name'), headerText)
      .nullish()
      .describe('Request headers, e.g. a token of the collector. Values may be references.'),
    ca: pem.describe(
      'A PEM file of authorities that are trusted for the collector besides the usual ones.',
    ),
    cert: pem.describe(
      "A PEM file of the gateway's own certificate, for a collector that asks for one.",
    ),
    key: pem.describe('The PEM file of its key.'),
    sample: z
      .number()
      .min(0, 'must be 0 to 1')
      .max(1, 'must be 0 to 1')
      .optional()
      .describe('Share of the traces that begin here. Default 1.'),
    follow: z
      .boolean()
      .optional()
      .describe(
        "Whether a client's traceparent goes on here and its sampled flag decides. Default true; false where clients are strangers.",
      ),
    content: z
      .boolean()
      .optional()
      .describe(
        'Whether prompts and answers go into the spans, cut and without what looks like a key. Default false.',
      ),
    service: text.optional().describe('service.name of the spans. Default model-gateway.'),
    attributes: z
      .record(z.string().min(1).max(255), text)
      .nullish()
      .describe('Resource attributes of the spans, e.g. deployment.environment.name: production.'),
    compression: z.enum(['gzip', 'none']).optional().describe('Default none.'),
    timeout: duration('Until the collector has answered. Default 10s.'),
  })
  .nullish()
  .describe('Where spans of calls are sent (docs/traces.md). Read at start only.');
