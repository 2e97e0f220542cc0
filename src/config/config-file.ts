/** Reads and checks `gateway.yaml`: text → data with lines → the checked form. */
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { isObject } from '../json/value.ts';
import { ownerText } from '../core/owner.ts';
import { Secret } from '../core/secret.ts';
import { type ConfigIssue, fileAndLine, type Finding, pathText } from './errors.ts';
import type { Referred } from './referred.ts';
import type { ConfigFile } from './schema.ts';
import type { Resolve, YamlText } from './yaml-text.ts';

/** The file that was requested, or found. */
interface ConfigLocation {
  /** Absolute. */
  readonly path: string;
  /** As issues show it: relative to the working directory if it is below that. */
  readonly name: string;
}

/** The name that is searched for in the working directory. */
const fileName = 'gateway.yaml';

export interface CheckedFile {
  readonly location: ConfigLocation;
  /** Without the entries that have errors, so that the others can still be checked further. */
  readonly content: ConfigFile;
  /** No text, or only comments. */
  readonly isEmpty: boolean;
  /** Every name under `providers:`, those with errors included. */
  readonly declared: ReadonlySet<string>;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly string[];
  /** Whether the checked file has a value at the path. */
  isSet(path: readonly PropertyKey[]): boolean;
  /** `gateway.yaml:3` */
  where(path: readonly PropertyKey[]): string;
  issue(path: readonly PropertyKey[], message: string): ConfigIssue;
}

/** The file of `--config` or the variable; else `gateway.yaml` of the working directory if it exists. */
export function findConfig(asked: string | undefined, cwd: string): ConfigLocation | undefined {
  const path = configPath(asked, cwd);
  if (asked === undefined && !isEntry(path)) return undefined;
  const near = relative(cwd, path);
  const isBelow = near !== '' && !near.startsWith('..') && !isAbsolute(near);
  return { path, name: isBelow ? near : path };
}

/**
 * Whether a directory has this entry. A link that leads nowhere is one: it is a mistake, and not a file that is absent.
 * False also where this user may not look into the directory.
 * @throws the system's error, where it is not known
 */
export function isEntry(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (isObject(error) && (error['code'] === 'EACCES' || error['code'] === 'EPERM')) return false;
    throw error;
  }
}

/** Absolute. The file to watch also where none was found: it applies as soon as it is there. */
export function configPath(asked: string | undefined, cwd: string): string {
  return resolve(cwd, asked ?? fileName);
}

/** A warning where the file has the other customary ending and so is not read. */
export function misnamedConfig(cwd: string): readonly string[] {
  const other = fileName.replace(/\.yaml$/, '.yml');
  return existsSync(join(cwd, other))
    ? [`${other} is not read: the config file is called ${fileName}`]
    : [];
}

interface ReadScope {
  readonly env: Environment;
  /** Receives what the references stand for. */
  readonly referred: Referred;
  readonly text?: string | undefined;
}

/**
 * Reads the file and checks its form. Never throws: what is wrong is in `issues`.
 * @param text default: what the file has
 */
export async function readConfig(
  location: ConfigLocation,
  { env, referred, text }: ReadScope,
): Promise<CheckedFile> {
  const read = text === undefined ? readText(location.path) : { text };
  if ('problem' in read) {
    const issues = [{ file: location.name, path: '', message: read.problem }];
    return checkedFile({ location, content: {}, issues });
  }
  // Loaded on demand: they cost start time, and many gateways run without a file.
  const { readYaml } = await import('./yaml-text.ts');
  const references = resolver({ env, directory: dirname(location.path), referred });
  const resolve: Resolve = (text, path) => {
    const resolved = references(text);
    if ('text' in resolved && hasReference(text)) referred.noteText(path, text, resolved.text);
    return resolved;
  };
  const yaml = readYaml({ text: read.text, resolve });
  const own = await checkForm(yaml);
  const foreign = foreignFile(yaml.value, own.content, location.name);
  const { content, findings } =
    foreign === undefined ? own : { content: {}, findings: [{ path: [], message: foreign }] };
  return checkedFile({
    location,
    content,
    issues: findings.map((finding) => toIssue(location, finding, yaml)),
    warnings: openKeys(location, content, referred),
    yaml,
  });
}

/** Another gateway. */
interface ForeignOrigin {
  readonly gateway: string;
  /** Its word in `import`. */
  readonly word: string;
}

/** Keys by which the config of another gateway is known. */
const foreignKeys: readonly (ForeignOrigin & { readonly form: RegExp })[] = [
  {
    form: /^(model_list|litellm_settings|router_settings|general_settings)$/,
    gateway: 'LiteLLM',
    word: 'litellm',
  },
  {
    form: /^(strategy|targets|virtual_key|override_params)$/,
    gateway: 'Portkey',
    word: 'portkey',
  },
  { form: /^(model|designated_version)$/, gateway: 'OpenRouter', word: 'openrouter' },
];

/** The gateway whose config this looks like; undefined for one of this gateway and for others. */
export function foreignOrigin(value: unknown): ForeignOrigin | undefined {
  const keys = isObject(value) ? Object.keys(value) : [];
  return foreignKeys.find(({ form }) => keys.some((key) => form.test(key)));
}

/**
 * One sentence instead of an error for each of its keys. A file with a key of this gateway is this gateway's, and a key
 * that is alone is a slip.
 */
function foreignFile(value: unknown, own: ConfigFile, name: string): string | undefined {
  const keys = isObject(value) ? Object.keys(value) : [];
  const found = foreignOrigin(value);
  if (found === undefined || keys.some((key) => Object.hasOwn(own, key))) return undefined;
  if (keys.length === 1 && keys[0] === 'model') return undefined;
  return `this is a config of ${found.gateway}. "model-gateway import ${found.word} ${name} --out NEW" makes one of this gateway of it`;
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

/** The data without each entry (`providers.team`, `limits.body`) that a finding is in. */
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

interface FileInput {
  readonly location: ConfigLocation;
  readonly content: ConfigFile;
  readonly issues: readonly ConfigIssue[];
  readonly warnings?: readonly string[];
  readonly yaml?: YamlText;
}

function checkedFile({ location, content, issues, warnings = [], yaml }: FileInput): CheckedFile {
  const root = yaml?.value;
  const providers = isObject(root) ? root['providers'] : undefined;
  return {
    location,
    content,
    isEmpty: yaml !== undefined && yaml.value === undefined && issues.length === 0,
    declared: new Set(isObject(providers) ? Object.keys(providers) : []),
    issues,
    warnings,
    isSet: (path) =>
      path.reduce<unknown>(
        (value, step) => (isObject(value) ? value[String(step)] : undefined),
        content,
      ) !== undefined,
    where: (path) => fileAndLine(location.name, yaml?.lineOf(path)),
    issue: (path, message) => toIssue(location, { path, message }, yaml),
  };
}

function toIssue(
  location: ConfigLocation,
  finding: Finding,
  yaml: YamlText | undefined,
): ConfigIssue {
  const line = finding.line ?? yaml?.lineOf(finding.path);
  return {
    file: location.name,
    ...(line === undefined ? {} : { line }),
    path: pathText(finding.path),
    message: finding.message,
    ...(finding.unresolved === undefined ? {} : { unresolved: finding.unresolved }),
  };
}

function readText(path: string): { readonly text: string } | { readonly problem: string } {
  try {
    if (statSync(path).isDirectory()) return { problem: 'is a directory, not a file' };
    const bytes = readFileSync(path);
    if (bytes.includes(0)) return { problem: 'is not UTF-8 text (UTF-16?): save it as UTF-8' };
    return { text: bytes.toString('utf8') };
  } catch (error) {
    const why = reason(error);
    if (why !== 'ENOENT') return { problem: `cannot be read (${why})${ownerText(ownerOf(path))}` };
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return { problem: isLink ? 'is a link to a file that does not exist' : 'does not exist' };
  }
}

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    // A folder above is closed, too.
    return undefined;
  }
}

/** Of a file's name, none. */
function keysIn(credentials: string | { readonly [name: string]: string } = {}): readonly string[] {
  return typeof credentials === 'string' ? [] : Object.values(credentials);
}

/** S25: a key in plain text in a file that every user of the machine can read. */
function openKeys(
  location: ConfigLocation,
  content: ConfigFile,
  referred: Referred,
): readonly string[] {
  const plain = Object.entries(content.providers ?? {}).find(([, provider]) =>
    [provider?.api_key ?? [], keysIn(provider?.credentials)]
      .flat()
      .some((key) => !referred.isFilled(key)),
  );
  if (plain === undefined || !isOpenToAll(location.path)) return [];
  return [
    `${location.name} holds providers.${plain[0]}.${plain[1]?.credentials === undefined ? 'api_key' : 'credentials'} in plain text and every user of this machine can read it: chmod 600, or use \${NAME}`,
  ];
}

export type Environment = { readonly [name: string]: string | undefined };

interface ReferenceScope {
  readonly env: Environment;
  /** Relative file references start here. */
  readonly directory: string;
  readonly referred: Referred;
}

const referenceForm = /\$\$\{|\$\{([^}]*)(\}?)/g;

/** Whether a text has `${`, which `$${` does not stand for. */
export function hasReference(text: string): boolean {
  return text.replaceAll('$${', '').includes('${');
}

const nameForm = /^[A-Za-z_][A-Za-z0-9_]*$/;
const foreignForms: readonly RegExp[] = [
  /^\$([A-Za-z_][A-Za-z0-9_]*)$/,
  /^os\.environ\/(\w+)$/,
  /^process\.env\.(\w+)$/,
  /^env[:.]([A-Za-z_]\w*)$/i,
  /^\{\{?\s*(?:env\.)?([A-Z_][A-Z0-9_]*)\s*\}?\}$/,
];

/**
 * A resolver for `${NAME}` and `${file:/path}` in values of one file; `$${` stands for a literal `${`. What looks
 * like another tool's reference is an error: it would go upstream as it is written.
 */
function resolver(scope: ReferenceScope): (text: string) => ReturnType<Resolve> {
  return (text) => {
    const foreign = foreignForms.map((form) => form.exec(text)?.[1]).find(Boolean);
    if (foreign !== undefined) return { problem: `is not a reference here; write \${${foreign}}` };
    if (!text.includes('${')) return { text };
    let problem: Exclude<ReturnType<Resolve>, { text: string }> | undefined;
    const filled = text.replace(referenceForm, (whole, inner: string, close: string) => {
      if (whole === '$${') return '${';
      const value = close === '' ? { problem: '${ is never closed' } : lookUp(inner, scope);
      if ('text' in value) {
        scope.referred.noteValue(whole, value.text);
        return value.text;
      }
      problem ??= value;
      return '';
    });
    return problem ?? { text: filled };
  };
}

function lookUp(inner: string, scope: ReferenceScope): ReturnType<Resolve> {
  if (inner.startsWith('file:')) return readSecretFile(inner.slice('file:'.length), scope);
  if (!nameForm.test(inner)) {
    return {
      problem: `\${${inner}} is not a reference: \${NAME} or \${file:/path}; $\${ stands for \${`,
    };
  }
  const value = scope.env[inner];
  if (value === undefined) {
    return { problem: `the environment variable ${inner} is not set`, unresolved: true };
  }
  if (value === '') {
    return { problem: `the environment variable ${inner} is empty`, unresolved: true };
  }
  return { text: value };
}

function readSecretFile(name: string, scope: ReferenceScope): ReturnType<Resolve> {
  if (name === '') return { problem: '${file:} names no file' };
  const path = resolve(scope.directory, name);
  try {
    // One final line end is the editor's, not the secret's.
    const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    if (text === '') return { problem: `the file ${name} is empty` };
    if (isOpenToAll(path)) {
      return {
        problem: `the file ${name} is readable by every user of this machine; chmod 600 it`,
      };
    }
    return { text };
  } catch (error) {
    return { problem: `the file ${name} cannot be read (${reason(error)})`, unresolved: true };
  }
}

/**
 * Whether every user of the machine can read the file (S25): its own mode allows it, and so does
 * every directory above it. Always false on Windows, where modes say nothing.
 * @throws the file system's error when the file is not there.
 */
export function isOpenToAll(path: string): boolean {
  if (process.platform === 'win32' || (statSync(path).mode & 0o004) === 0) return false;
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    if ((statSync(directory).mode & 0o001) === 0) return false;
    if (directory === dirname(directory)) return true;
  }
}

/** The system's code, e.g. `ENOENT`; never the text, which names the path again. */
export function reason(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
}

/**
 * A secret in a variable of the environment, or in the file that a variable of the same name and _FILE names.
 * Undefined where neither is set. @throws Error that names the variable and what to do
 */
export function readSecretVariable(env: Environment, variable: string): Secret | undefined {
  const fileVariable = `${variable}_FILE`;
  const text = env[variable] ?? '';
  const path = env[fileVariable] ?? '';
  if (path === '') return text === '' ? undefined : new Secret(text);
  if (text !== '') throw new Error(`Set ${variable} or ${fileVariable}, not both.`);
  let read: string;
  try {
    if (isOpenToAll(path)) {
      throw new Error(
        `${fileVariable}: every user of this machine can read ${path}; chmod 600 it.`,
      );
    }
    // One final line end is the editor's, not the secret's.
    read = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof Error && !('code' in error)) throw error;
    throw new Error(`${fileVariable}: ${path} cannot be read (${reason(error)}).`, {
      cause: error,
    });
  }
  if (read === '') throw new Error(`${fileVariable}: ${path} is empty.`);
  return new Secret(read);
}

/** Secrets of the gateway itself that are read from the environment as they are. */
const plainSecrets = [
  'MODEL_GATEWAY_ADMIN_TOKEN',
  'MODEL_GATEWAY_METRICS_TOKEN',
  'MODEL_GATEWAY_KEY',
] as const;

/**
 * The environment with the contents of files where NAME_FILE names one, for supervisors that hand over secrets as files.
 * @throws Error that names the variable and what to do
 */
export function withSecretFiles(env: Environment): Environment {
  const read = plainSecrets
    .filter((name) => (env[`${name}_FILE`] ?? '') !== '')
    .map((name) => [name, readSecretVariable(env, name)?.reveal()] as const);
  // What was read must not count as set twice.
  const named = read.map(([name]) => [`${name}_FILE`, undefined] as const);
  return read.length === 0 ? env : { ...env, ...Object.fromEntries([...read, ...named]) };
}
