/** `pull`: brings a model file to this machine. */
import type { Clock } from '../../core/runtime.ts';
import type { JsonObject } from '../../json/value.ts';
import { readArguments, UsageError, withUsage, type Arguments } from '../arguments.ts';
import type { Command, CommandContext } from '../command.ts';
import { cell, jsonText } from '../reply.ts';
import { columns, printable } from '../table.ts';
import { bytesText, countText } from '../../core/display.ts';

// How far a long piece of work is: a bar on a terminal, a line sometimes anywhere else.

interface ProgressOptions {
  write(text: string): void;
  readonly clock: Clock;
  /** Width of the terminal; absent = this is none. */
  readonly terminalColumns?: number;
}

interface Progress {
  progress(step: Step, bytes: number, total?: number): void;
  note(text: string): void;
  /** Leaves the line of the bar. */
  end(): void;
}

type Step = 'reading' | 'fetching' | 'copying';

const titles: { readonly [step in Step]: string } = {
  reading: 'checking what is there',
  fetching: 'fetching',
  copying: 'copying',
};

const redrawMs = 100;
const plainPercent = 10;
const plainBytes = 250_000_000;
const rateWindowMs = 5000;
const barWidth = 16;

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

function createProgress(options: ProgressOptions): Progress {
  return options.terminalColumns === undefined ? new PlainProgress(options) : new Bar(options);
}

/** For files and pipes: a line at the beginning and at each tenth. */
class PlainProgress implements Progress {
  readonly #options: ProgressOptions;
  #step: Step | undefined;
  #shownStep = 0;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  progress(step: Step, bytes: number, total?: number): void {
    const shown =
      total === undefined || total === 0
        ? Math.floor(bytes / plainBytes)
        : Math.floor((bytes / total) * (100 / plainPercent));
    if (step === this.#step && shown <= this.#shownStep) return;
    this.#step = step;
    this.#shownStep = shown;
    this.#options.write(`${titles[step]}: ${amountText(bytes, total)}\n`);
  }

  note(text: string): void {
    this.#options.write(`${printable(text)}\n`);
  }

  end(): void {
    // Each line was complete.
  }
}

/** One line that is written over and over. */
class Bar implements Progress {
  readonly #options: ProgressOptions;
  readonly #samples: Sample[] = [];
  #step: Step | undefined;
  #drawnAt = -Infinity;
  #isOpen = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  progress(step: Step, bytes: number, total?: number): void {
    const { clock, terminalColumns = 80, write } = this.#options;
    const now = clock.now();
    if (step !== this.#step) {
      this.end();
      this.#samples.length = 0;
      this.#step = step;
    }
    this.#samples.push({ at: now, bytes });
    if (now - this.#drawnAt < redrawMs && bytes !== total) return;
    this.#drawnAt = now;
    while ((this.#samples[0]?.at ?? now) < now - rateWindowMs) this.#samples.shift();
    const bar = total === undefined ? [] : [barText(bytes / Math.max(1, total))];
    const figures = [amountText(bytes, total), ...this.#rateText(bytes, total)];
    const full = [titles[step], ...bar, ...figures].join('  ');
    // Where there is no room for all, the figures say more than the bar.
    const line = full.length < terminalColumns ? full : [titles[step], ...figures].join('  ');
    write(`\r${line.slice(0, terminalColumns - 1)}\u001B[K`);
    this.#isOpen = true;
  }

  note(text: string): void {
    this.end();
    this.#options.write(`${printable(text)}\n`);
  }

  end(): void {
    if (this.#isOpen) this.#options.write('\n');
    this.#isOpen = false;
    this.#drawnAt = -Infinity;
  }

  #rateText(bytes: number, total: number | undefined): readonly string[] {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < 500) return [];
    const perSecond = ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
    if (perSecond <= 0) return [];
    const left = total === undefined ? [] : [`${timeText((total - bytes) / perSecond)} left`];
    return [`${bytesText(perSecond)}/s`, ...left];
  }
}

function barText(share: number): string {
  const full = Math.min(barWidth, Math.floor(share * barWidth));
  return `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`;
}

function amountText(bytes: number, total: number | undefined): string {
  if (total === undefined) return bytesText(bytes);
  const percent = total === 0 ? 100 : Math.floor((bytes / total) * 100);
  return `${percent} %  ${bytesText(bytes)} of ${bytesText(total)}`;
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const help = `Usage: model-gateway pull SOURCE [options]
       model-gateway pull --list [--json]

Downloads a model file (GGUF) into the models folder. The model can then be
called as local/NAME without a restart of the gateway. To resume an interrupted
download, run the same command again.

  SOURCE  hf:USER/REPO:QUANT      a file on the Hugging Face hub, by its
                                  quantisation (Q4_K_M, Q8_0, ...)
          hf:USER/REPO/FILE.gguf  a file on the hub, by its name; #REVISION may
                                  follow
          https://HOST/FILE.gguf  a file on any web server
          PATH/FILE.gguf          a file on this machine, which is copied

  --name NAME     name of the model; default: the file name in lower case
  --sha256 HEX    expected hash of the file; the hash that the hub reports is
                  always checked
  --list          list well-known small models, with size and licence
  --json          print one object at the end: id, path, size_bytes, sha256 and
                  the properties of the file

Environment: HF_ENDPOINT or MODEL_ENDPOINT (a mirror of the hub), HF_TOKEN (sent
only to the hub or its mirror), HTTPS_PROXY, HTTP_PROXY, NO_PROXY,
NODE_EXTRA_CA_CERTS.

Remove a model with: model-gateway models remove NAME
`;

/** What was fetched, as the composition root reports it. */
export interface PullReport {
  readonly id: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  /** Who named the hash that it was checked against. */
  readonly verified: 'given' | 'server' | 'none';
  readonly source: string;
  readonly already: boolean;
  /** What the file says of itself. */
  readonly about: JsonObject;
  readonly warnings: readonly string[];
  /** Whether the gateway on the data directory knows the model now. */
  readonly gateway: 'knows it' | 'not running' | 'not loaded';
}

export interface PullOptions {
  readonly source: string;
  readonly name?: string;
  readonly sha256?: string;
}

export interface PullEvents {
  progress(step: 'reading' | 'fetching' | 'copying', bytes: number, total?: number): void;
  note(text: string): void;
}

/** A model that `--list` names. */
export interface ListedModel {
  readonly title: string;
  readonly source: string;
  readonly size: string;
  readonly licence: string;
  readonly tools: string;
  readonly remark: string;
}

export interface PullCommandDeps {
  /** @throws Error whose message is for the person. */
  pull(options: PullOptions, events: PullEvents): Promise<PullReport>;
  readonly known: readonly ListedModel[];
  readonly clock: Clock;
}

export function pullCommand(deps: PullCommandDeps): Command {
  return {
    name: 'pull',
    summary: 'download a model for the embedded engine',
    help,
    run: (args, context) => withUsage(context, 'pull', () => run(args, context, deps)),
  };
}

async function run(
  args: readonly string[],
  context: CommandContext,
  deps: PullCommandDeps,
): Promise<number> {
  const isList = args.includes('--list');
  const given = readArguments(args, {
    values: ['name', 'sha256'],
    switches: ['list', 'json'],
    positionals: isList ? [] : ['SOURCE'],
  });
  if (given.has('help')) context.stdout(help);
  else if (isList) list(given, context, deps.known);
  else await bring(given, context, deps);
  return 0;
}

function list(given: Arguments, context: CommandContext, known: readonly ListedModel[]): void {
  if (given.value('name') !== undefined || given.value('sha256') !== undefined) {
    throw new UsageError('--list cannot be combined with other arguments.');
  }
  if (given.has('json')) {
    context.stdout(jsonText(known.map((model) => ({ ...model, verified_here: false }))));
    return;
  }
  const rows = known.map(({ title, source, size, licence, tools, remark }) => [
    title,
    source,
    `~${size}`,
    tools,
    licence,
    remark,
  ]);
  const lines = [['MODEL', 'SOURCE', 'SIZE', 'TOOLS', 'LICENCE', 'REMARK'], ...rows];
  context.stdout(columns(lines, { head: true, screen: context.screen, whole: [0, 1] }));
  context.stdout(
    '\nSizes, licences and remarks come from the model cards and are not verified; the card is authoritative.\n',
  );
}

async function bring(
  given: Arguments,
  context: CommandContext,
  { pull, clock }: PullCommandDeps,
): Promise<void> {
  const [source = ''] = given.positionals;
  const name = given.value('name');
  const sha256 = given.value('sha256');
  const progress = createProgress({
    write: context.stderr,
    clock,
    ...(context.terminalColumns === undefined ? {} : { terminalColumns: context.terminalColumns }),
  });
  const options = {
    source,
    ...(name === undefined ? {} : { name }),
    ...(sha256 === undefined ? {} : { sha256 }),
  };
  const report = await pull(options, progress).finally(() => progress.end());
  for (const warning of report.warnings) context.stderr(`warning: ${printable(warning)}\n`);
  context.stdout(given.has('json') ? jsonText(reportJson(report)) : reportText(report));
}

function reportJson(report: PullReport): JsonObject {
  const { id, path, sizeBytes, sha256, verified, source, already, about, warnings } = report;
  return {
    id,
    path,
    source,
    sha256,
    verified,
    already,
    ...about,
    size_bytes: sizeBytes,
    warnings,
    gateway: report.gateway,
  };
}

const verifiedTexts = {
  given: 'as --sha256 asked for',
  server: 'as the server named it',
  none: 'not verified: no expected hash is known',
} as const;

const gatewayTexts = {
  'knows it': 'It can be called now.',
  'not running': 'It can be called once the gateway runs.',
  'not loaded': 'The running gateway did not load it; see its log for the reason.',
} as const;

function reportText(report: PullReport): string {
  const { id, path, sizeBytes, sha256, verified, already, about } = report;
  const { parameters, context, trained_context: trained, quantization, architecture } = about;
  const size = typeof parameters === 'number' ? `${countText(parameters)} parameters, ` : '';
  const rows = [
    ['model', `${id}${already ? '   (already present)' : ''}`],
    ['what', `${size}${cell(architecture)}, ${cell(quantization)}, ${bytesText(sizeBytes)}`],
    ['context', `${cell(context)} tokens (trained for ${cell(trained)})`],
    ['file', path],
    ['sha256', `${sha256}   (${verifiedTexts[verified]})`],
  ];
  return `${columns(rows)}\n${gatewayTexts[report.gateway]}\n`;
}
