// Examines every regular expression of src/ for texts on which it takes more than linear time
// (S22). Usage: node scripts/check-patterns.mjs
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { patternsOf } from '../test/support/patterns.ts';

// The analysis in JavaScript alone: its native programs are not installed (overrides in package.json).
process.env.RECHECK_BACKEND = 'pure';
const { checkSync } = await import('recheck');

/**
 * What one pattern may take, in ms of the clock on the wall, which is all that the analysis knows. On an idle machine none takes
 * more than six seconds; beside the other steps of .ci/run each has an eighth of a core at times.
 */
const timeout = 300_000;

/** The administrator's own text: short, and no client writes it. */
const ofAdministrator = 'reads the config, or what the command line was given';
/** No verdict in time, so a person looked: why the time is linear. */
const oneWay = 'every repetition ends at a character that it cannot take, and begins at one place';
const bounded = 'behind each word a bounded number of characters is looked at';
const slow =
  'judged safe in 10 s of CPU, more than a busy machine has; no alternative goes on where another begins';
const ofRefusal = 'reads at most the 8 KB that are kept of a refusal';
const noTail = 'nothing follows the repetition, so nothing is tried again';

/** Patterns that the analysis refuses or cannot judge, by their source, each with the reason. */
const reviewed = new Map([
  ['thinking[^.]{0,200}not supported', 'looks at 200 characters behind each beginning at most'],
  [String.raw`\/+$`, ofAdministrator],
  [String.raw`[{[,][^#]*[:[,{]\s*\$\{`, ofAdministrator],
  [String.raw` +$`, 'cuts the lines of tables that the program made'],
  ['[.-]+$', 'reads at most 100 characters'],
  ['0+$', 'reads at most 21 digits that the program made'],
  [
    String.raw`(?:^|[-._/])((?:UD-)?(?:I?Q\d+_[A-Z0-9]+(?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4|TQ[12]_0))(?:[-.]|$)`,
    oneWay,
  ],
  [String.raw`\b(?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|MXFP4\w*)(?: - \w+)?`, noTail],
  [
    String.raw`\s*<parameter=([^>\n]+)>\n?([^]*?)\n?<\/parameter>\s*(?=<parameter=|$)`,
    'sticky, and each end of an element is looked at once (test/unit/engine/linear.test.ts)',
  ],
  [
    String.raw`\b(sk|rk|gw|gsk|xai|pk|key|AIza)[-_][A-Za-z0-9*_-]{6,}|\bAIza[\w-]{10,}|Bearer\s+\S+`,
    noTail,
  ],
  [
    String.raw`(\b|\\[bfnrt]|\\u[\dA-Fa-f]{4}|%[\dA-Fa-f]{2})(?:(?:sk|csk|rk|gw|gwadmin|gsk|xai|tgp|pk|key|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w*-]{6,}|(?:hf|npm|fw)_[A-Za-z0-9]{20,}|[0-9a-f]{32}\.[A-Za-z0-9]{16}\b|AIza[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|eyJ[\w-]{8,}(?:\.[\w-]*){0,2}|Bearer\s+[\w.~+/=-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`,
    slow,
  ],
  [
    String.raw`gw_[A-Za-z0-9]{8}_[A-Za-z0-9]{49}|gwadmin_[A-Za-z0-9]{49}|sk-(?:ant|proj|svcacct|admin)-[\w-]{20,}|sk-[A-Za-z0-9]{32,}|(?:gsk_|xai-)[A-Za-z0-9]{40,}|AIza[\w-]{35}|gh[opsu]_[A-Za-z0-9]{36}|github_pat_\w{22,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{20,}|(?:hf|npm)_[A-Za-z0-9]{30,}`,
    noTail,
  ],
  [
    String.raw`(?:maximum|max\.?|limit|context (?:length|size|window)|n_ctx)[^\d]{0,40}(\d[\d,]{0,20})|(?<!\d)(\d[\d,]{0,20})(?: tokens?)? max`,
    bounded,
  ],
  [
    String.raw`^(?:sk|rk|pk|gw|gsk|xai|ghp|glpat|hf|AKIA|AIza|eyJ)[-_]?[\w-]*[A-Za-z0-9]{12}|^Bearer\b`,
    ofAdministrator,
  ],
  [String.raw`gemini-2\.5.{0,60}pro`, bounded],
  [String.raw`qwen.{0,40}thinking`, bounded],
  [String.raw`\bkey \[([A-Za-z][A-Za-z0-9_.]{0,60})\]`, ofRefusal],
  [
    String.raw`\b(?:expected one of|one of|(?:supported|allowed|valid|possible) (?:values|roles|types|options)(?: are| include)?)\b:?(?:[^.;]|\.(?=\w)){0,400}`,
    ofRefusal,
  ],
  [String.raw`tools?\b[^]{0,300}(not supported|cannot|are not)`, bounded],
  [String.raw`thinking[^.]{0,200}not supported|enabled|budget`, bounded],
  [String.raw`must be (set to )?true|only.{0,200}stream`, bounded],
  [String.raw`"sequence_number"\s*:\s*(\d{1,15})`, 'reads at most 200 characters'],
  [
    String.raw`invalid_encrypted_content|encrypted content (?:for item )?(?:\S{1,400} )?(?:could not be|(?:was )?not issued to)|without its required (following item|'reasoning' item)|items are not persisted`,
    bounded,
  ],
]);

/** Whether texts of the attack's form take more than eight times as long when they are four times as long. */
function growsFaster(source, flags, { pumps, suffix }) {
  const expression = new RegExp(source, flags.replace(/[gy]/g, ''));
  const textOf = (length) =>
    pumps
      .map(
        ({ prefix, pump }) =>
          prefix + pump.repeat(Math.ceil(length / pumps.length / Math.max(1, pump.length))),
      )
      .join('') + suffix;
  // The least of three: Node compiles an expression when it is used again, and a busy machine makes single ones long.
  const msOf = (length) => {
    const text = textOf(length);
    const times = [1, 2, 3].map(() => {
      const began = process.cpuUsage();
      expression.test(text);
      return process.cpuUsage(began).user / 1000;
    });
    return Math.min(...times);
  };
  let before = msOf(125);
  for (const length of [500, 2000, 8000, 32_000, 128_000]) {
    const ms = msOf(length);
    if (ms > 50) return ms > 8 * Math.max(before, 1);
    before = ms;
  }
  return false;
}

/** A character, a class of them, or an escape; and how often it may be. */
const atom =
  /\[(?:\\.|[^\]\\])+\]|\\[pP]\{[^}]+\}|\\[^bB1-9kxuc]|\\x[\da-fA-F]{2}|[^\\[\](){}*+?|^$]/u;
const oneRun = new RegExp(
  `^\\^(?:${atom.source})*(?:(?:${atom.source})(?:[*+]|\\{\\d+(?:,\\d*)?\\}))?(?:${atom.source})*\\$?$`,
  'u',
);

/**
 * Whether an expression repeats at most one thing, a single character, and begins at the start of the text only: no text can
 * take more than one try for each of its characters, and the analysis takes seconds to say so where the repetition has
 * a bound.
 */
function isOneRun(source, flags) {
  return !flags.includes('m') && oneRun.test(source);
}

const src = join(import.meta.dirname, '..', 'src');
const used = new Set();
let looked = 0;
let problems = 0;
const tell = (text) => {
  problems += 1;
  process.stdout.write(`${text}\n`);
};
for (const name of globSync('**/*.ts', { cwd: src }).sort()) {
  for (const { source, flags, line } of patternsOf(readFileSync(join(src, name), 'utf8'))) {
    looked += 1;
    if (reviewed.has(source)) {
      used.add(source);
      continue;
    }
    if (isOneRun(source, flags)) continue;
    const { status, complexity, attack, checker } = checkSync(source, flags, {
      timeout,
      randomSeed: 1,
    });
    if (status === 'safe') continue;
    // The fuzzer also names expressions that look at a bounded number of characters from each place: it counts steps
    // of one text. Those whose time doubles with the text are linear.
    if (checker === 'fuzz' && attack?.pumps !== undefined && !growsFaster(source, flags, attack))
      continue;
    const why = complexity?.summary ?? 'no verdict in time';
    tell(`src/${name}:${line}: /${source}/${flags}: ${why} ${attack?.pattern ?? ''}`);
  }
}
for (const source of reviewed.keys()) {
  if (!used.has(source)) tell(`scripts/check-patterns.mjs: /${source}/ is in src no longer`);
}
process.stdout.write(
  `patterns: ${looked} looked at, ${reviewed.size} by a person; ${problems} problems\n`,
);
process.exitCode = problems === 0 ? 0 : 1;
