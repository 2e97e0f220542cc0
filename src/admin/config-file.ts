/**
 * `/api/config/file`: the config file as its owner edits it. Secrets do not leave the gateway: the text has placeholders
 * instead of them (`config/edit/masked-file.ts`). A text is written only if the gateway can run with it.
 */
import { createHmac } from 'node:crypto';
import { basename } from 'node:path';
import { z } from 'zod';
import type { Actor, AuditLog } from '../access/audit.ts';
import type { EditProblem, MaskedFile } from '../config/edit/masked-file.ts';
import type { ConfigChange } from '../config/edit/preview.ts';
import {
  backUpFile,
  type FileOnDisk,
  maxFileBytes,
  readFileOnDisk,
  replaceFile,
  whyReadOnly,
} from '../config/edit/file-on-disk.ts';
import { ConfigError, issueText } from '../config/errors.ts';
import { reason } from '../config/config-file.ts';
import type { ReloadOutcome } from './handler.ts';
import type { ConfigRouteDeps } from './operations.ts';
import { type AdminAnswer, AdminError, type AdminRoute, readInput } from './route.ts';

/** The effects of a text of the config file on the running gateway. */
export interface ConfigPreview {
  readonly changes: readonly ConfigChange[];
  readonly warnings: readonly string[];
  /** Changed settings that are read at the start only. */
  readonly needsRestart: readonly string[];
}

export interface ConfigFileRouteDeps extends ConfigRouteDeps {
  readonly audit: AuditLog;
  reload(): Promise<ReloadOutcome>;
  /** Absent where no gateway runs. */
  readonly editing?: {
    /** The key of tags that show whether the file has changed since it was read. */
    readonly tagKey: Uint8Array;
    /** Whether other gateways have config files of their own for the same store. */
    readonly isShared: boolean;
    /** @throws ConfigError; Error that says why the gateway cannot run with it */
    preview(texts: { readonly before: string; readonly after: string }): Promise<ConfigPreview>;
  };
}

const problem = z.strictObject({
  line: z.number().int().nullable().describe('From 1, like column; null for the whole file.'),
  column: z.number().int().nullable(),
  path: z.string(),
  message: z.string(),
  text: z.string().describe('The line that model-gateway check prints.'),
});

const change = z.strictObject({
  path: z.string(),
  before: z.string().nullable().describe('Null: not set. A secret reads [secret].'),
  after: z.string().nullable(),
  overridden_by: z
    .string()
    .nullable()
    .describe('Flag or variable that decides in place of the file.'),
});

const preview = {
  changes: z.array(change).describe('Settings that differ from those that run.'),
  warnings: z.array(z.string()),
  needs_restart: z.array(z.string()).describe('Changed settings that are read at start only.'),
};

const fileAnswer = z.strictObject({
  path: z.string().nullable().describe('Null: the gateway runs without a file.'),
  text: z.string().nullable().describe('Secrets read <kept: PATH>. Null: it cannot be shown.'),
  etag: z.string().nullable().describe('For If-Match of a change; also the header ETag.'),
  editable: z.boolean(),
  reason: z.string().nullable().describe('Why it is read-only here.'),
  shared: z.boolean().describe('Other gateways on the same store have config files of their own.'),
});

const body = z.strictObject({
  text: z
    .string('must be a text')
    .max(maxFileBytes, `has more than ${maxFileBytes} characters`)
    .describe('The whole file. A placeholder <kept: PATH> keeps the secret of that path.'),
});

export function configFileRoutes(deps: ConfigFileRouteDeps): readonly AdminRoute[] {
  const editor = new Editor(deps);
  return [
    {
      method: 'GET',
      path: '/api/config/file',
      about: { summary: 'Show the config file without its secrets.', answer: fileAnswer },
      run: () => editor.show(),
    },
    {
      method: 'POST',
      path: '/api/config/file/validate',
      about: {
        summary: 'Check a text for the config file, and show what it would change.',
        body,
        answer: z.strictObject({ valid: z.boolean(), problems: z.array(problem), ...preview }),
      },
      run: (request) => editor.validate(readInput(body, request.body).text),
    },
    {
      method: 'PUT',
      path: '/api/config/file',
      about: {
        summary:
          'Write the config file and apply it. Needs If-Match with the ETag of the file that was read.',
        body,
        answer: z.strictObject({
          applied: z.literal(true),
          etag: z.string(),
          backup: z.string().describe('File with what was replaced.'),
          ...preview,
        }),
      },
      run: ({ body: given, http, actor }) => {
        if (http?.ifMatch === undefined) throw new AdminError(428, 'Send If-Match with the ETag.');
        const { text } = readInput(body, given);
        return editor.write({ text, tag: http.ifMatch, actor });
      },
    },
  ];
}

interface Write {
  readonly text: string;
  readonly tag: string;
  readonly actor: Actor;
}

/** The current file, and the secrets that its text hides. */
interface Opened {
  readonly file: FileOnDisk;
  readonly masked: MaskedFile;
}

type Checked =
  | { readonly problems: readonly EditProblem[] }
  | { readonly text: string; readonly preview: ConfigPreview };

const changedMeanwhile =
  'The config file has changed since it was read. Nothing was written. Load it again and repeat the change.';

class Editor {
  readonly #deps: ConfigFileRouteDeps;
  /** One change at a time. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(deps: ConfigFileRouteDeps) {
    this.#deps = deps;
  }

  async show(): Promise<AdminAnswer> {
    const { editing } = this.#deps;
    const path = this.#deps.config().configFile;
    const found = await this.#open();
    const shared = editing?.isShared ?? false;
    if ('problem' in found) {
      const none = { text: null, etag: null, editable: false };
      return { status: 200, body: { path: path ?? null, ...none, reason: found.problem, shared } };
    }
    const why = whyReadOnly(found.file);
    const etag = this.#tag(found.file.bytes);
    const { text } = found.masked;
    const rest = { editable: why === undefined, reason: why ?? null, shared };
    return { status: 200, etag, body: { path: path ?? null, text, etag, ...rest } };
  }

  async validate(typed: string): Promise<AdminAnswer> {
    const opened = await this.#opened();
    const checked = await this.#check(opened, typed);
    if ('problems' in checked) {
      const problems = checked.problems.map((each) => problemJson(each, opened.file));
      const nothing = { changes: [], warnings: [], needs_restart: [] };
      return { status: 200, body: { valid: false, problems, ...nothing } };
    }
    const shown = previewJson(checked.preview, opened.masked);
    return { status: 200, body: { valid: true, problems: [], ...shown } };
  }

  write(input: Write): Promise<AdminAnswer> {
    const written = this.#writing.then(() => this.#write(input));
    this.#writing = written.catch(() => undefined);
    return written;
  }

  async #write({ text: typed, tag, actor }: Write): Promise<AdminAnswer> {
    const { audit, config } = this.#deps;
    const opened = await this.#opened();
    const why = whyReadOnly(opened.file);
    if (why !== undefined) throw new AdminError(409, `The config file is read-only: ${why}.`);
    if (tag !== this.#tag(opened.file.bytes)) throw new AdminError(412, changedMeanwhile);
    const checked = await this.#check(opened, typed);
    if ('problems' in checked) return refusedText(checked.problems, opened);
    const shown = previewJson(checked.preview, opened.masked);
    const subject = `file:${config().configFile ?? opened.file.path}`;
    const paths = checked.preview.changes.map(({ path }) => path);
    const after = { changed: paths.slice(0, maxNoted), changes: paths.length };
    // The entry comes first, so that every change has an entry.
    await audit.note({ actor, action: 'config.write', subject, after });
    try {
      const bytes = Buffer.from(checked.text);
      const backup = this.#replace(opened.file, bytes);
      await this.#apply(opened, bytes);
      return {
        status: 200,
        body: { applied: true, etag: this.#tag(bytes), backup, ...shown },
      };
    } catch (error) {
      await audit.note({ actor, action: 'config.write_failed', subject });
      throw error;
    }
  }

  /** @returns where the replaced bytes are now @throws AdminError */
  #replace(file: FileOnDisk, bytes: Uint8Array): string {
    const now = readFileOnDisk(file.path);
    if ('problem' in now || !now.bytes.equals(file.bytes))
      throw new AdminError(412, changedMeanwhile);
    try {
      const backup = backUpFile(file);
      replaceFile(file, bytes);
      return backup;
    } catch (error) {
      const why = reason(error);
      const mount = why === 'EBUSY' ? ': the file is mounted by itself. Mount its folder' : '';
      throw new AdminError(409, `The config file cannot be replaced (${why})${mount}.`);
    }
  }

  /** @throws AdminError when the gateway refuses the file; the previous one is back then */
  async #apply({ file, masked }: Opened, bytes: Uint8Array): Promise<void> {
    const { applied, problems } = await this.#deps.reload();
    if (applied) return;
    const now = readFileOnDisk(file.path);
    const why = problems.map((each) => masked.scrub(each)).join('; ');
    if ('problem' in now || !now.bytes.equals(bytes)) {
      throw new AdminError(409, `The gateway refused the file: ${why}. It changed meanwhile.`);
    }
    try {
      replaceFile(file, file.bytes);
    } catch (error) {
      throw new AdminError(
        409,
        `The gateway refused the file: ${why}. The previous file could not be put back (${reason(error)}): it is ${basename(file.path)}.bak in the same folder.`,
      );
    }
    await this.#deps.reload();
    throw new AdminError(422, `The gateway refused the file: ${why}. The previous file is back.`);
  }

  async #check({ file, masked }: Opened, typed: string): Promise<Checked> {
    const { editing } = this.#deps;
    // Browsers send lines without a carriage return.
    const isCrlf = /\r\n/.test(file.text) && !/[^\r]\n/.test(file.text);
    const sent = isCrlf ? typed.replace(/\r?\n/g, '\r\n') : typed;
    const restored = masked.restore(sent);
    if (!('text' in restored)) return { problems: restored };
    const { text, typedLine } = restored;
    if (Buffer.byteLength(text) > maxFileBytes) {
      return { problems: [{ path: '', message: `is larger than ${maxFileBytes / 1024} KiB` }] };
    }
    try {
      const found = await editing?.preview({ before: file.text, after: text });
      if (found === undefined) throw new AdminError(409, noGateway);
      return { text, preview: found };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const lines = sent.split('\n');
      return {
        problems: error.issues.map((issue) => {
          const line = issue.line === undefined ? undefined : typedLine(issue.line);
          const message = masked.scrub(issue.message);
          const at =
            line === undefined ? {} : { line, column: columnOf(lines[line - 1], issue.path) };
          return { path: issue.path, message, ...at };
        }),
      };
    }
  }

  async #opened(): Promise<Opened> {
    const found = await this.#open();
    if ('problem' in found)
      throw new AdminError(409, `The config file cannot be edited here: ${found.problem}.`);
    return found;
  }

  async #open(): Promise<Opened | { readonly problem: string }> {
    const { config, editing } = this.#deps;
    const path = config().configFile;
    if (editing === undefined) return { problem: noGateway };
    if (path === undefined) return { problem: 'the gateway runs without a config file' };
    const file = readFileOnDisk(path);
    if ('problem' in file) return file;
    // The schema is loaded when it is needed: it costs start time.
    const { maskFile } = await import('../config/edit/masked-file.ts');
    const masked = maskFile(file.text);
    return 'problem' in masked ? masked : { file, masked };
  }

  #tag(bytes: Uint8Array): string {
    // Keyed: a plain hash of a file with a weak password would let it be guessed.
    const { tagKey = '' } = this.#deps.editing ?? {};
    return `"${createHmac('sha256', tagKey).update(bytes).digest('hex')}"`;
  }
}

const noGateway = 'no gateway runs here';
/** Paths in an entry of the audit log. */
const maxNoted = 200;

/** Where the last part of the path is in its line, else where the line begins. From 1. */
function columnOf(line = '', path: string): number {
  const name = path.split(/[.[]/).findLast((part) => !part.endsWith(']')) ?? '';
  const at = name === '' ? -1 : line.indexOf(name);
  return (at === -1 ? Math.max(0, line.search(/\S/)) : at) + 1;
}

function problemJson({ line, column, path, message }: EditProblem, { path: file }: FileOnDisk) {
  const issue = { file: basename(file), path, message, ...(line === undefined ? {} : { line }) };
  return { line: line ?? null, column: column ?? null, path, message, text: issueText(issue) };
}

function previewJson({ changes, warnings, needsRestart }: ConfigPreview, masked: MaskedFile) {
  const shown = (value: string | null): string | null =>
    value === null ? null : masked.scrub(value);
  return {
    changes: changes.map(({ path, before, after, overriddenBy }) => ({
      path,
      before: shown(before),
      after: shown(after),
      overridden_by: overriddenBy,
    })),
    warnings: warnings.map((each) => masked.scrub(each)),
    needs_restart: [...needsRestart],
  };
}

function refusedText(problems: readonly EditProblem[], { file }: Opened): AdminAnswer {
  const lines = problems.map((each) => problemJson(each, file).text);
  const message = `The configuration is invalid. Nothing was written: ${lines.join('; ')}`;
  return { status: 422, body: { error: { message, problems: lines } } };
}
