// Writes docs/gateway.schema.json (the JSON Schema of gateway.yaml, for editors) and docs/options.md (the same for
// readers) from their one source, src/config/. A unit test fails while one of them is stale.
// Usage: node scripts/write-schema.mjs
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publishedSchema, publishedSchemaText } from '../src/config/schema.ts';
import { optionsPage } from './options-page.ts';

const docs = join(import.meta.dirname, '..', 'docs');
writeFileSync(join(docs, 'gateway.schema.json'), publishedSchemaText());
writeFileSync(join(docs, 'options.md'), optionsPage(publishedSchema()));
