/** `prices`: what a model costs, and who says so. */
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { readArguments, withUsage } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, jsonText, objectsOf, requireOk } from '../reply.ts';
import type { Screen } from '../screen.ts';
import { columns } from '../table.ts';

const help = `Usage: model-gateway prices [MODEL] [--json]

Shows the prices of models in dollars per million tokens and their source: the
config (gateway.yaml with its line), the price package with its version, or
local for models that run here. Without MODEL: all models that can be called.

The price of a model can be unknown, which is not 0. Its calls then have no cost
in the ledger, and keys with a budget cannot call it unless prices: in the
config has a default.

  --json    an array: model, target, price (null: unknown) with source, input,
            cache_read, cache_write, cache_write_1h, output, reasoning (null: as
            input, input, cache_write, -, -, output), audio_input, image_input,
            video_input, audio_cache_read, audio_output, image_output (null: as
            for text), tiers (rates of the whole call for long prompts),
            service_tiers (by name), call, per_image, web_search and file_search
            (dollars each)
`;

export const pricesCommand: Command = {
  name: 'prices',
  summary: 'show the prices of models and their sources',
  help,
  run: (args, context) => withUsage(context, 'prices', () => run(args, context)),
};

async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const isOne = args.some((arg) => !arg.startsWith('-'));
  const given = readArguments(args, { switches: ['json'], positionals: isOne ? ['MODEL'] : [] });
  if (given.has('help')) {
    context.stdout(help);
    return 0;
  }
  const [model] = given.positionals;
  const query = model === undefined ? '' : `?${new URLSearchParams({ model }).toString()}`;
  const admin = await context.admin();
  const reply = await admin.request('GET', `/api/prices${query}`);
  const answer = requireOk(reply);
  const prices = objectsOf(answer, 'prices');
  context.stdout(
    given.has('json') ? jsonText(prices) : table(prices, answer['default'], context.screen),
  );
  return 0;
}

const head = ['MODEL', 'TARGET', 'PROMPT', 'INPUT', 'CACHED', 'WRITTEN', 'WRITTEN 1H', 'OUTPUT'];

function table(
  prices: readonly JsonObject[],
  otherwise: Json | undefined,
  screen: Screen | undefined,
): string {
  if (prices.length === 0) return 'No model can be called.\n';
  const rows = [
    ...prices.flatMap(({ model, target, price }) =>
      priceRows([cell(model), model === target ? '' : cell(target)], price),
    ),
    ...(isObject(otherwise) ? priceRows(['default', ''], otherwise) : []),
  ];
  const text = columns([[...head, 'FROM'], ...rows], { head: true, screen, whole: [0, 1] }).replace(
    / +$/gm,
    '',
  );
  return `Dollars per million tokens\n\n${text}`;
}

/** One row, and one for each tier of longer prompts and of service. */
function priceRows(names: readonly string[], price: Json | undefined): readonly string[][] {
  if (!isObject(price)) return [[...names, '', 'unknown', '', '', '', 'unknown', '-']];
  const services = isObject(price['service_tiers']) ? price['service_tiers'] : {};
  return [
    [...names, '', ...rateCells(price), remarks(price)],
    ...lengthRows(price, ''),
    ...Object.entries(services).flatMap(([name, own]) =>
      isObject(own) ? [['', '', '', ...rateCells(own), name], ...lengthRows(own, name)] : [],
    ),
  ];
}

function lengthRows(price: JsonObject, remark: string): readonly string[][] {
  return objectsOf(price, 'tiers').map((tier) => [
    '',
    '',
    `> ${cell(tier['above'])}`,
    ...rateCells(tier),
    remark,
  ]);
}

/** What is charged in effect: an absent rate is the one that it falls back to. */
function rateCells(rates: JsonObject): readonly string[] {
  const { input = null, output = null } = rates;
  const read = rates['cache_read'] ?? input;
  const write = rates['cache_write'] ?? input;
  const long = rates['cache_write_1h'] ?? write;
  return [input, read, write, long, output].map(cell);
}

const mediaRates = [
  'audio_input',
  'image_input',
  'video_input',
  'audio_cache_read',
  'audio_output',
  'image_output',
];

function remarks(price: JsonObject): string {
  const { source, call, reasoning, per_image: image } = price;
  const { web_search: search, file_search: files } = price;
  return [
    cell(source),
    ...(typeof reasoning === 'number' ? [`reasoning ${reasoning}`] : []),
    ...mediaRates.flatMap((name) => {
      const rate = price[name];
      return typeof rate === 'number' ? [`${name.replaceAll('_', ' ')} ${rate}`] : [];
    }),
    ...(typeof call === 'number' ? [`and ${call} a call`] : []),
    ...(typeof image === 'number' ? [`and ${image} a picture`] : []),
    ...(typeof search === 'number' ? [`and ${search} a web search`] : []),
    ...(typeof files === 'number' ? [`and ${files} a file search`] : []),
  ].join(', ');
}
