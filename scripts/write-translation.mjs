// Writes docs/user/translation.md, what becomes of each field, from its one source: test/decisions.
// A test fails while the file is stale.
// Usage: node scripts/write-translation.mjs
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { translationText } from '../test/decisions/document.ts';

writeFileSync(join(import.meta.dirname, '..', 'docs', 'user', 'translation.md'), translationText());
