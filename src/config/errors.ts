/** Everything that is wrong with the configuration, reported together. */

export interface ConfigIssue {
  /** As a person would write it; absent when the place is a flag or a variable. */
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  /** `providers.team.dialekt`, `--listen` or `MODEL_GATEWAY_LISTEN`; empty for the file as a whole. */
  readonly path: string;
  /** Never holds a value that came from a reference: such values may be secrets. */
  readonly message: string;
}

/** An issue of the file, before its place is put into words. */
export interface Finding {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly line?: number;
}

/** `message` is one line an issue: `gateway.yaml:12: providers.team.dialekt: unknown key`. */
export class ConfigError extends Error {
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(issues.map(issueText).join('\n'));
    this.name = 'ConfigError';
    this.issues = issues;
  }
}

/** One issue as one line. */
function issueText(issue: ConfigIssue): string {
  const place = issue.file === undefined ? [] : [fileAndLine(issue.file, issue.line)];
  return [...place, ...(issue.path === '' ? [] : [issue.path]), issue.message].join(': ');
}

/** `gateway.yaml:12` */
export function fileAndLine(file: string, line: number | undefined): string {
  return line === undefined ? file : `${file}:${line}`;
}

/** A path as people write it: `models.fast.targets[1].weight`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** The candidate that differs least from the name, when it differs little; else undefined. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = plain(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, plain(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ` (did you mean "dialect"?)`, or nothing. */
export function suggestion(name: string, candidates: Iterable<string>): string {
  const meant = nearest(name, candidates);
  return meant === undefined ? '' : ` (did you mean "${meant}"?)`;
}

/** `baseURL`, `base-url` and `base_url` are one name to a reader. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
