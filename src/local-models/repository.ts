/** Which file of a repository of the hub is meant, and what the hub knows of it: size, hash, commit. */
import { bytesText } from '../core/display.ts';
import { Secret } from '../core/secret.ts';
import { tryParseObject } from '../json/parse.ts';
import { type JsonObject, isObject } from '../json/value.ts';
import { isPartOfSplit, quantizationOf } from './model-file.ts';
import { PullError } from './part-file.ts';
import type { Web } from './web.ts';

// The hub that `hf:` means: Hugging Face's hub, or a mirror of it.

export type Environment = { readonly [name: string]: string | undefined };

const defaultHub = 'https://huggingface.co/';

export class Hub {
  /** Ends in a slash. */
  readonly endpoint: URL;
  readonly #token: Secret | undefined;

  /** @throws PullError when the variable of the mirror holds no address. */
  constructor(env: Environment) {
    this.endpoint = endpointOf(env);
    const token = env['HF_TOKEN']?.trim();
    this.#token = token === undefined || token === '' ? undefined : new Secret(token);
    if (token !== undefined && !/^[\x21-\x7e]*$/.test(token)) {
      throw new PullError('HF_TOKEN holds characters that no token has.');
    }
  }

  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** The token, for the hub itself only, and never in clear over a network. */
  tokenFor(url: URL): Secret | undefined {
    const safe = url.protocol === 'https:' || isLoopback(url);
    return safe && url.origin === this.endpoint.origin ? this.#token : undefined;
  }
}

/** Whether an address leads to this machine itself. */
function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.[\d.]+$/.test(hostname);
}

/** llama.cpp reads MODEL_ENDPOINT first, the hub's own programs read HF_ENDPOINT. */
function endpointOf(env: Environment): URL {
  const name = (env['MODEL_ENDPOINT'] ?? '') === '' ? 'HF_ENDPOINT' : 'MODEL_ENDPOINT';
  const text = env[name] ?? '';
  if (text === '') return new URL(defaultHub);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new PullError(`${name} is not an http:// or https:// address.`);
  }
  if (`${url.username}${url.password}${url.search}` !== '') {
    throw new PullError(`${name} must be an address without user, password or "?".`);
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

export interface HubFile {
  /** Of the commit that was examined: an edit of the repository changes nothing under a download. */
  readonly url: URL;
  /** Path in the repository. */
  readonly path: string;
  readonly bytes?: number;
  readonly sha256?: string;
}

interface Entry {
  readonly path: string;
  readonly bytes?: number;
  readonly sha256?: string;
}

/** Taken in this order where none is requested. */
const preferred: readonly string[] = ['Q4_K_M', 'Q4_0', 'Q8_0'];

/** @throws PullError when the hub cannot be reached, or has no such file. */
export async function findHubFile(source: HubSource, hub: Hub, web: Web): Promise<HubFile> {
  const name = `${source.user}/${source.repository}`;
  const revision =
    source.revision === undefined ? '' : `/revision/${encodeURIComponent(source.revision)}`;
  const asked = new URL(`api/models/${name}${revision}?blobs=true`, hub.endpoint);
  const info = tryParseObject(await web.text(asked));
  if (info === undefined || !Array.isArray(info['siblings'])) {
    throw new PullError(`${asked.origin}${asked.pathname} gave no list of files.`);
  }
  const entry = choose(info['siblings'].flatMap(readEntry), source);
  const commit = info['sha'];
  const pinned =
    typeof commit === 'string' && /^[0-9a-f]{40}$/.test(commit)
      ? commit
      : (source.revision ?? 'main');
  const path = entry.path.split('/').map(encodeURIComponent).join('/');
  const url = new URL(`${name}/resolve/${encodeURIComponent(pinned)}/${path}`, hub.endpoint);
  return { ...entry, url };
}

function readEntry(value: unknown): readonly Entry[] {
  if (!isObject(value)) return [];
  const { rfilename: path, size, lfs } = value;
  if (typeof path !== 'string' || !/\.gguf$/i.test(path)) return [];
  const bytes = count(isObject(lfs) ? lfs : {}, 'size') ?? count({ size }, 'size');
  const hash = isObject(lfs) ? lfs['sha256'] : undefined;
  return [
    {
      path,
      ...(bytes === undefined ? {} : { bytes }),
      ...(typeof hash === 'string' && /^[0-9a-f]{64}$/i.test(hash)
        ? { sha256: hash.toLowerCase() }
        : {}),
    },
  ];
}

function count(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function choose(entries: readonly Entry[], source: HubSource): Entry {
  const name = `${source.user}/${source.repository}`;
  if (source.file !== undefined) {
    const found = entries.find(({ path }) => path === source.file);
    if (found === undefined) {
      throw new PullError(`${name} has no file ${source.file}. ${listText(entries, name)}`);
    }
    return whole(found);
  }
  const models = entries.filter(({ path }) => !/(^|\/|[-.])mmproj/i.test(path));
  if (models.length === 0) {
    throw new PullError(
      `${name} holds no GGUF file. Repositories with GGUF files often have the same name with -GGUF at its end.`,
    );
  }
  const wanted = source.quantization === undefined ? preferred : [source.quantization];
  for (const quantization of wanted) {
    const found = ofQuantization(models, quantization);
    if (found !== undefined) return whole(found);
  }
  const [only, ...others] = models;
  if (source.quantization === undefined && only !== undefined && others.length === 0) {
    return whole(only);
  }
  const asked =
    source.quantization === undefined
      ? `Say which file of ${name} is meant.`
      : `${name} has no file of the quantisation ${source.quantization}.`;
  throw new PullError(`${asked} ${listText(models, name)}`);
}

/** Unsloth's dynamic files (`UD-Q4_K_XL`) answer to the shorter name too, where there is no other. */
function ofQuantization(models: readonly Entry[], quantization: string): Entry | undefined {
  const named = (name: string): readonly Entry[] =>
    models
      .filter(({ path }) => quantizationOf(path.slice(path.lastIndexOf('/') + 1)) === name)
      .sort((a, b) => a.path.length - b.path.length);
  return named(quantization)[0] ?? named(`UD-${quantization}`)[0];
}

function whole(entry: Entry): Entry {
  if (!isPartOfSplit(entry.path)) return entry;
  throw new PullError(
    `${entry.path} is one part of a split model, which is not supported. Choose a smaller quantisation, or join the parts with llama.cpp (llama-gguf-split --merge FIRST-PART WHOLE.gguf) and run: model-gateway pull WHOLE.gguf`,
  );
}

const listed = 20;

function listText(entries: readonly Entry[], name: string): string {
  const lines = entries.slice(0, listed).map(({ path, bytes }) => {
    const quantization = quantizationOf(path.slice(path.lastIndexOf('/') + 1));
    const form = quantization === undefined ? `hf:${name}/${path}` : `hf:${name}:${quantization}`;
    return `  ${form}${bytes === undefined ? '' : `  ${bytesText(bytes)}`}`;
  });
  const more = entries.length > listed ? [`  and ${entries.length - listed} more`] : [];
  return `There are:\n${[...new Set([...lines, ...more])].join('\n')}`;
}

// The sources of `pull`: a file of the hub, of any web server, or of this machine.

interface HubSource {
  readonly kind: 'hub';
  readonly user: string;
  readonly repository: string;
  /** Branch, tag or commit; absent = the newest. */
  readonly revision?: string;
  /** Path in the repository; absent = chosen by `quantization`. */
  readonly file?: string;
  /** In capitals. */
  readonly quantization?: string;
}

interface WebSource {
  readonly kind: 'web';
  readonly url: URL;
}

interface PathSource {
  readonly kind: 'path';
  readonly path: string;
}

export type Source = HubSource | WebSource | PathSource;

const forms =
  'hf:USER/REPO:QUANT, hf:USER/REPO/FILE.gguf, https://HOST/FILE.gguf, or the path of a file';
const wordForm = /^[A-Za-z0-9][\w.-]{0,95}$/;
const revisionForm = /^[\w][\w./-]{0,127}$/;

/** @throws PullError when the text is none of the forms. */
export function readSource(text: string): Source {
  if (/^hf:/i.test(text)) return readHub(text.slice('hf:'.length), text);
  if (/^https?:\/\//i.test(text)) {
    if (!URL.canParse(text)) throw new PullError('This is not an address.');
    const url = new URL(text);
    if (url.username !== '' || url.password !== '') {
      throw new PullError('The address holds a user or password, which is not supported.');
    }
    url.hash = '';
    // What the browser shows of a file on the hub is a page; the file itself is next door.
    url.pathname = url.pathname.replace(/^(\/[^/]+\/[^/]+)\/blob\//, '$1/resolve/');
    return { kind: 'web', url };
  }
  if (/^[a-z][a-z0-9+.-]+:/i.test(text) && !/^[a-z]:[\\/]/i.test(text)) {
    throw new PullError(`${text.slice(0, 100)}: this is none of ${forms}.`);
  }
  return { kind: 'path', path: text };
}

const hubForm = /^(?:\/\/)?([^/:#]+)\/([^/:#]+)(?::([^/#]+)|\/([^#]+))?(?:#(.+))?$/;

function readHub(text: string, whole: string): HubSource {
  const [, user = '', repository = '', quantization, file, revision] = hubForm.exec(text) ?? [];
  const words = [user, repository, ...(quantization === undefined ? [] : [quantization])];
  const isRight =
    words.every((word) => wordForm.test(word)) &&
    (revision === undefined || (revisionForm.test(revision) && !revision.includes('..'))) &&
    (file === undefined || isFilePath(file));
  if (!isRight) {
    throw new PullError(
      `${whole.slice(0, 200)}: expected hf:USER/REPO:QUANT or hf:USER/REPO/FILE.gguf.`,
    );
  }
  return {
    kind: 'hub',
    user,
    repository,
    ...(revision === undefined ? {} : { revision }),
    ...(file === undefined ? {} : { file }),
    ...(quantization === undefined ? {} : { quantization: quantization.toUpperCase() }),
  };
}

function isFilePath(path: string): boolean {
  return (
    /\.gguf$/i.test(path) &&
    path.length <= 512 &&
    path.split('/').every((part) => /^[^\\:*?"<>|\p{Cc}]+$/u.test(part) && !/^\.+$/.test(part))
  );
}

/** Over plain http the file can be replaced on the way, so its hash must be given. */
export function mustNameHash({ url }: WebSource): boolean {
  return url.protocol === 'http:' && !isLoopback(url);
}

/** The source as records and messages show it: without a query, which may be a signature. */
export function sourceText(source: Source): string {
  if (source.kind === 'path') return source.path;
  if (source.kind === 'web') return `${source.url.origin}${source.url.pathname}`;
  const { user, repository, revision, file, quantization } = source;
  const what = file === undefined ? '' : `/${file}`;
  const which = quantization === undefined ? '' : `:${quantization}`;
  return `hf:${user}/${repository}${which}${what}${revision === undefined ? '' : `#${revision}`}`;
}
