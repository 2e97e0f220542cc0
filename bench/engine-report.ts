/** The engine's figures as rows and tables. */
import { summarize, type Summary } from './analysis.ts';
import { atOnce, type EngineFigures, type EngineRound, type Turn } from './engine.ts';
import { budgetRow, range, table } from './tables.ts';

/** "Within 10 % of the library's rate", as a ratio of the time of a token. */
const tokenTime = { must: 1.11 };
const overhead = { must: 0.3 };
const firstToken = { must: 30 };
/** "At least twice the tokens a second", as a ratio of the time for all of them. */
const together = { must: 0.5 };

/** The rows of the budget table for one model. */
export function engineBudgets(figures: EngineFigures): string[][] {
  if ('missing' in figures) return [];
  const { model, rounds } = figures;
  const over = (figure: (round: EngineRound) => number): Summary | undefined =>
    summarize(rounds.map(figure));
  const ratio = over((round) => round.gatewayMsPerToken / round.libraryMsPerToken);
  const added = over((round) => round.gatewayMsPerToken - round.libraryMsPerToken);
  const first = summarize(rounds.flatMap((round) => round.firstMs));
  const shared = over((round) => round.oneByOneRate / round.atOnceRate);
  const title = `engine, ${model.label}`;
  return [
    budgetRow(`${title}: time of a token beside the library alone`, ratio, {
      budget: tokenTime,
      unit: ' ×',
      digits: 2,
    }),
    budgetRow(`${title}: added to each token by socket and gateway`, added, {
      budget: overhead,
      unit: ' ms',
      digits: 2,
    }),
    // What reading a prompt takes is the model's; the budget is the tiny model's.
    ...(model.large
      ? []
      : [
          budgetRow(`${title}: warm first token`, first, {
            budget: firstToken,
            unit: ' ms',
            digits: 1,
          }),
        ]),
    ...(model.large
      ? [
          budgetRow(`${title}: ${atOnce} at once beside one by one, time for all`, shared, {
            budget: together,
            unit: ' ×',
            digits: 2,
          }),
        ]
      : []),
  ];
}

/** What the budgets are made of, and the growing conversation. */
export function engineLines(engines: readonly EngineFigures[]): string[] {
  return engines.flatMap((figures) => ('missing' in figures ? [] : modelLines(figures)));
}

function modelLines({
  model,
  rounds,
}: Extract<EngineFigures, { readonly rounds: unknown }>): string[] {
  const show = (figure: (round: EngineRound) => number, digits: number): string =>
    range(summarize(rounds.map(figure)), digits, '');
  const first = range(summarize(rounds.flatMap(({ firstMs }) => firstMs)), 1, '');
  const head = ['tokens a second', 'median (min–max)'];
  const rates = [
    ['the library alone', show(({ libraryMsPerToken }) => 1000 / libraryMsPerToken, 0)],
    ['through the gateway', show(({ gatewayMsPerToken }) => 1000 / gatewayMsPerToken, 0)],
    [`${atOnce} requests one by one`, show(({ oneByOneRate }) => oneByOneRate, 0)],
    [`${atOnce} requests at once, together`, show(({ atOnceRate }) => atOnceRate, 0)],
  ];
  const counts = ['turn', 'prompt tokens', 'ms to the first token', 'ms when all is read anew'];
  return [
    `### ${model.label}`,
    '',
    `Threads: ${model.threads}. Warm first token of a short question: ${first} ms.`,
    '',
    ...table(head, rates),
    '',
    'A growing conversation:',
    '',
    ...table(counts, turnRows(rounds)),
    '',
  ];
}

function turnRows(rounds: readonly EngineRound[]): string[][] {
  const all = rounds.flatMap(({ turns }) => turns);
  return [...new Set(all.map(({ turn }) => turn))].map((wanted) => {
    const seen = all.filter(({ turn }) => turn === wanted);
    const show = (figure: (turn: Turn) => number, digits: number): string =>
      range(summarize(seen.map(figure)), digits, '');
    return [
      String(wanted),
      show(({ promptTokens }) => promptTokens, 0),
      show(({ firstMs }) => firstMs, 1),
      show(({ anewMs }) => anewMs, 1),
    ];
  });
}
