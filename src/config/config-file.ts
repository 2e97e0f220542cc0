/** Reads and checks `gateway.yaml`: text → data with lines → the checked form. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { isObject } from '../core/json.ts';
import { fileAndLine, pathText, type ConfigIssue, type Finding } from './config-error.ts';
import { isOpenToAll, reason, resolver, type Environment } from './references.ts';
import type { ConfigFile } from './schema.ts';
import { defaults } from './settings.ts';
import type { YamlText } from './yaml-text.ts';

/** The file that was asked for, or found. */
export interface ConfigPlace {
  /** Absolute. */
  readonly path: string;
  /** As issues show it: relative to the working directory where it lies below it. */
  readonly name: string;
}

export interface CheckedFile {
  readonly place: ConfigPlace;
  /** Without the entries that have errors, so that the others can still be checked further. */
  readonly content: ConfigFile;
  /** Every name under `providers:`, those with errors included. */
  readonly declared: ReadonlySet<string>;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly string[];
  /** `gateway.yaml:3` */
  where(path: readonly PropertyKey[]): string;
  issue(path: readonly PropertyKey[], message: string): ConfigIssue;
}

/** The file of `--config` or the variable; else `gateway.yaml` of the working directory if it exists. */
export function findConfig(asked: string | undefined, cwd: string): ConfigPlace | undefined {
  const path = resolve(cwd, asked ?? defaults.configFile);
  if (asked === undefined && !existsSync(path)) return undefined;
  const near = relative(cwd, path);
  return { path, name: near.startsWith('..') || isAbsolute(near) ? path : near };
}

/** A warning where the file has the other customary ending and so is not read. */
export function misnamedConfig(cwd: string): readonly string[] {
  const other = defaults.configFile.replace(/\.yaml$/, '.yml');
  return existsSync(join(cwd, other))
    ? [`${other} is not read: the config file is called ${defaults.configFile}`]
    : [];
}

/** Reads the file and checks its form. Never throws: what is wrong is in `issues`. */
export async function readConfig(place: ConfigPlace, env: Environment): Promise<CheckedFile> {
  const read = readText(place.path);
  if ('problem' in read) {
    const issues = [{ file: place.name, path: '', message: read.problem }];
    return checkedFile({ place, content: {}, issues });
  }
  // Loaded on demand: they cost start time, and many gateways run without a file.
  const { readYaml } = await import('./yaml-text.ts');
  const references = resolver({ env, directory: dirname(place.path) });
  const yaml = readYaml({ text: read.text, resolve: references });
  const { content, findings } = await checkForm(yaml);
  return checkedFile({
    place,
    content,
    issues: findings.map((finding) => toIssue(place, finding, yaml)),
    warnings: openKeys(place, content, read.text),
    yaml,
  });
}

async function checkForm(
  yaml: YamlText,
): Promise<{ readonly content: ConfigFile; readonly findings: readonly Finding[] }> {
  if (yaml.value === undefined || yaml.value === null) {
    return { content: {}, findings: yaml.findings };
  }
  const { configForm } = await import('./schema.ts');
  const checked = configForm.safeParse(yaml.value);
  if (checked.success && yaml.findings.length === 0) return { content: checked.data, findings: [] };
  const findings = [...yaml.findings];
  if (!checked.success) {
    const { readFindings } = await import('./schema-issues.ts');
    const known = new Set(findings.map(({ path }) => pathText(path)));
    // A value whose reference failed may well have the wrong form: that is one mistake, not two.
    const found = readFindings(checked.error.issues, yaml.value);
    findings.push(...found.filter(({ path }) => !known.has(pathText(path))));
  }
  const rest = configForm.safeParse(without(yaml.value, findings));
  return { content: rest.success ? rest.data : {}, findings };
}

/** The data without each entry (`providers.team`, `limits.body`) that a finding stands in. */
function without(value: unknown, findings: readonly Finding[]): unknown {
  if (!isObject(value)) return {};
  const broken = new Set(findings.map(({ path }) => pathText(path.slice(0, 2))));
  const sections = Object.entries(value).filter(([name]) => !broken.has(name));
  return Object.fromEntries(
    sections.map(([name, section]) => [
      name,
      isObject(section)
        ? Object.fromEntries(
            Object.entries(section).filter(([entry]) => !broken.has(pathText([name, entry]))),
          )
        : section,
    ]),
  );
}

interface FileParts {
  readonly place: ConfigPlace;
  readonly content: ConfigFile;
  readonly issues: readonly ConfigIssue[];
  readonly warnings?: readonly string[];
  readonly yaml?: YamlText;
}

function checkedFile({ place, content, issues, warnings = [], yaml }: FileParts): CheckedFile {
  const root = yaml?.value;
  const providers = isObject(root) ? root['providers'] : undefined;
  return {
    place,
    content,
    declared: new Set(isObject(providers) ? Object.keys(providers) : []),
    issues,
    warnings,
    where: (path) => fileAndLine(place.name, yaml?.lineOf(path)),
    issue: (path, message) => toIssue(place, { path, message }, yaml),
  };
}

function toIssue(place: ConfigPlace, finding: Finding, yaml: YamlText | undefined): ConfigIssue {
  const line = finding.line ?? yaml?.lineOf(finding.path);
  return {
    file: place.name,
    ...(line === undefined ? {} : { line }),
    path: pathText(finding.path),
    message: finding.message,
  };
}

function readText(path: string): { readonly text: string } | { readonly problem: string } {
  try {
    if (statSync(path).isDirectory()) return { problem: 'is a directory; a file is expected' };
    return { text: readFileSync(path, 'utf8') };
  } catch (error) {
    const why = reason(error);
    return { problem: why === 'ENOENT' ? 'there is no such file' : `cannot be read (${why})` };
  }
}

/** S25: a key in plain text in a file that every user of the machine can read. */
function openKeys(place: ConfigPlace, content: ConfigFile, text: string): readonly string[] {
  const plain = Object.entries(content.providers ?? {}).find(([, provider]) =>
    [provider?.api_key ?? [], Object.values(provider?.credentials ?? {})]
      .flat()
      .some((key) => text.includes(key)),
  );
  if (plain === undefined || !isOpenToAll(place.path)) return [];
  return [
    `${place.name} holds providers.${plain[0]}.${plain[1]?.credentials === undefined ? 'api_key' : 'credentials'} in plain text and every user of this machine can read it: chmod 600, or use \${NAME}`,
  ];
}
