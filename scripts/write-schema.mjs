// Writes docs/gateway.schema.json, the JSON Schema of gateway.yaml for editors, from its one source:
// src/config/schema.ts. A unit test fails while the file is stale.
// Usage: node scripts/write-schema.mjs
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publishedSchemaText } from '../src/config/schema.ts';

const file = join(import.meta.dirname, '..', 'docs', 'gateway.schema.json');
writeFileSync(file, publishedSchemaText());
