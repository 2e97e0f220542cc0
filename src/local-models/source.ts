/** What `pull` is asked for: a file of the hub, of any web server, or of this machine. */
import { isLoopback } from './repository.ts';
import { PullError } from './pull-error.ts';

export interface HubSource {
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

export interface WebSource {
  readonly kind: 'web';
  readonly url: URL;
}

export interface PathSource {
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
  if (/^https?:\/\//i.test(text)) return readWeb(text);
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
    isRevision(revision) &&
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

function isRevision(text: string | undefined): boolean {
  return text === undefined || (revisionForm.test(text) && !text.includes('..'));
}

function isFilePath(path: string): boolean {
  return (
    /\.gguf$/i.test(path) &&
    path.length <= 512 &&
    path.split('/').every((part) => /^[^\\:*?"<>|\p{Cc}]+$/u.test(part) && !/^\.+$/.test(part))
  );
}

function readWeb(text: string): WebSource {
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
