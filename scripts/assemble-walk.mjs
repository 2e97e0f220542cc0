// Assembles src/json/walk.wat into src/json/walk-program.ts.
// Usage: node scripts/assemble-walk.mjs [--check]: with --check nothing is written, and an outdated program is an error.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import startAssembler from 'wabt';

const folder = join(import.meta.dirname, '../src/json');
const source = readFileSync(join(folder, 'walk.wat'), 'utf8');
const target = join(folder, 'walk-program.ts');

const assembler = await startAssembler();
const module = assembler.parseWat('walk.wat', source, { simd: true, bulk_memory: true });
module.validate();
const { buffer } = module.toBinary({});
const lines = Buffer.from(buffer)
  .toString('base64')
  .match(/.{1,96}/g)
  .map((line) => `  '${line}'`);
const text = `/** The assembled \`walk.wat\`, as base64. Written by \`node scripts/assemble-walk.mjs\`; do not edit. */
export const walkProgram =
${lines.join(' +\n')};
`;

if (!process.argv.includes('--check')) writeFileSync(target, text);
else if (readFileSync(target, 'utf8') !== text) {
  process.stderr.write(
    'src/json/walk-program.ts is outdated: run node scripts/assemble-walk.mjs\n',
  );
  process.exitCode = 1;
}
