/**
 * Asks the real engine every held-back question, greedily, and counts exact answers.
 *
 * Usage: node evaluate.ts --model FILE --questions FILE [--scores FILE] [--wrong FILE]
 *
 * `--scores` gets the counts as JSON; `--wrong` gets every wrong answer beside the wanted one.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeAnswer, isRight, readCases, requestOf, type Case } from './evaluation/cases.ts';
import { startEngine, type Engine } from './evaluation/engine.ts';

const { values: flags } = parseArgs({
  options: {
    model: { type: 'string' },
    questions: { type: 'string' },
    scores: { type: 'string' },
    wrong: { type: 'string' },
  },
});

interface Score {
  right: number;
  total: number;
}

interface WrongAnswer {
  readonly category: string;
  readonly asked: string | undefined;
  readonly want: string;
  readonly said: string;
}

interface Scores {
  readonly byCategory: Map<string, Score>;
  readonly all: Score;
  readonly wrong: WrongAnswer[];
}

function required(name: 'model' | 'questions'): string {
  const value = flags[name];
  if (value !== undefined) return value;
  process.stderr.write(`--${name} is missing\n`);
  process.exit(2);
}

async function evaluate(engine: Engine, cases: readonly Case[]): Promise<Scores> {
  const scores: Scores = { byCategory: new Map(), all: { right: 0, total: 0 }, wrong: [] };
  for (const one of cases) {
    const completion = await engine.complete(requestOf(one));
    const { category, want } = one;
    const ofCategory = scores.byCategory.get(category) ?? { right: 0, total: 0 };
    scores.byCategory.set(category, ofCategory);
    const right = isRight(one, completion);
    for (const score of [ofCategory, scores.all]) {
      score.total += 1;
      if (right) score.right += 1;
    }
    const asked = one.turns.at(-1)?.text;
    if (!right) scores.wrong.push({ category, asked, want, said: describeAnswer(completion) });
  }
  return scores;
}

function percent({ right, total }: Score): string {
  return `${((100 * right) / total).toFixed(1)} %`;
}

function table({ byCategory, all }: Scores): string {
  const rows = [...byCategory, ['all', all] as const];
  return rows
    .map(([name, score]) => `| ${name} | ${score.right}/${score.total} | ${percent(score)} |\n`)
    .join('');
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

const modelPath = required('model');
const cases = readCases(readFileSync(required('questions'), 'utf8'));
const engine = await startEngine(modelPath);
try {
  const scores = await evaluate(engine, cases);
  process.stdout.write(`| category | exact | |\n| --- | --- | --- |\n${table(scores)}`);
  const sha256 = createHash('sha256').update(readFileSync(modelPath)).digest('hex');
  const categories = Object.fromEntries(scores.byCategory);
  if (flags.scores !== undefined) writeJson(flags.scores, { sha256, all: scores.all, categories });
  if (flags.wrong !== undefined) writeJson(flags.wrong, scores.wrong);
} finally {
  await engine.stop();
}
