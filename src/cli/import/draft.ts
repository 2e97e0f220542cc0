/** A `gateway.yaml` in the making: what another gateway's config says, in the form of this one, and notes on each line. */
import { Document, isMap, isPair, isScalar } from 'yaml';
import type { ConfigPath } from '../../config/yaml-text.ts';
import { defined } from './values.ts';

/** What `import` needs to know of a vendor that this gateway knows. */
export interface KnownVendor {
  readonly id: string;
  readonly dialect: string;
  readonly baseUrl: string;
  /** Variable of its key; absent for engines and clouds. */
  readonly keyVariable?: string;
  /** It is found by names of one's own (a resource, a project, a region), not by an address. */
  readonly isCloud: boolean;
}

/**
 * - taken: it means the same here
 * - changed: it has a counterpart that differs, or a person must do something
 * - omitted: known there, without a counterpart here
 * - not known: no published option of that gateway, or a value that cannot be read
 */
export type NoteKind = 'taken' | 'changed' | 'left out' | 'not known';

export interface Note {
  readonly path: ConfigPath;
  readonly kind: NoteKind;
  /** Never holds a value that may be a secret. */
  readonly text: string;
}

type Scalar = string | number | boolean;
export type Fields = { readonly [name: string]: Scalar | readonly unknown[] | object };

/** How an upstream was described. Two with the same members are one provider. */
export interface ProviderInput {
  /** Id of a vendor that this gateway knows; undefined = a server that speaks chat completions. */
  readonly vendor: string | undefined;
  /** Absent = the vendor's own. */
  readonly baseUrl?: string;
  /** A reference. */
  readonly apiKey?: string;
  readonly headers?: { readonly [name: string]: string };
  /** Members that only clouds have. */
  readonly cloud?: Fields;
  /** A name that says more than the address. */
  readonly name?: string;
}

interface DraftEntry {
  readonly fields: Fields | string;
  readonly from: ConfigPath;
}

export class Draft {
  readonly notes: Note[] = [];
  /** Names of the environment that the result reads. */
  readonly variables = new Set<string>();
  readonly #vendors: ReadonlyMap<string, KnownVendor>;
  /** Secrets by the variable that replaces them. Never printed. */
  readonly #plainSecrets = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  readonly #providers = new Map<string, DraftEntry>();
  readonly #deployments = new Map<string, { [name: string]: string }>();
  readonly #models = new Map<string, DraftEntry>();
  readonly #others = new Map<string, { [name: string]: unknown }>();

  constructor(vendors: readonly KnownVendor[]) {
    this.#vendors = new Map(vendors.map((each) => [each.id, each]));
  }

  vendor(id: string): KnownVendor | undefined {
    return this.#vendors.get(id);
  }

  note(kind: NoteKind, path: ConfigPath, text: string): void {
    this.notes.push({ path, kind, text });
  }

  /** `${NAME}` of the environment. */
  variable(name: string): string {
    this.variables.add(name);
    return `\${${name}}`;
  }

  /** A variable for a secret that is in plain text there; two secrets never share one. */
  variableFor(secret: string, wanted: string): string {
    for (let n = 1; ; n++) {
      const name = n === 1 ? wanted : `${wanted}_${n}`;
      const held = this.#plainSecrets.get(name);
      if (held !== undefined && held !== secret) continue;
      this.#plainSecrets.set(name, secret);
      return name;
    }
  }

  /** The id of the provider, made where it is new. */
  provider(input: ProviderInput, from: ConfigPath): string {
    const identity = JSON.stringify([
      input.vendor,
      input.baseUrl,
      input.apiKey,
      input.headers,
      input.cloud,
    ]);
    const known = this.#ids.get(identity);
    if (known !== undefined) return known;
    const id = this.#freeId(input.vendor ?? slug(input.name ?? input.baseUrl ?? 'server'));
    this.#ids.set(identity, id);
    this.#providers.set(id, { fields: this.#providerFields(id, input), from });
    return id;
  }

  #freeId(wanted: string): string {
    // `local` is the embedded engine.
    const base = wanted === 'local' ? 'local-server' : wanted;
    for (let n = 1; ; n++) {
      const id = n === 1 ? base : `${base}-${n}`;
      // Another vendor's id would bring that vendor's rules.
      const isForeign = this.#vendors.has(id) && id !== wanted;
      if (!this.#providers.has(id) && !isForeign) return id;
    }
  }

  #providerFields(id: string, input: ProviderInput): Fields {
    const { vendor: name = '', baseUrl, apiKey, headers = {}, cloud } = input;
    const vendor = this.#vendors.get(name);
    const isPreset = vendor?.id === id;
    const needsAddress = !isPreset && vendor?.isCloud !== true;
    return defined({
      like: isPreset ? undefined : vendor?.id,
      dialect: needsAddress ? (vendor?.dialect ?? 'openai-chat') : undefined,
      base_url: baseUrl ?? (needsAddress ? vendor?.baseUrl : undefined),
      ...cloud,
      api_key: apiKey,
      headers: Object.keys(headers).length === 0 ? undefined : headers,
    });
  }

  /** The model that runs under the name of a cloud's deployment. */
  deployment(provider: string, name: string, model: string): void {
    const names = this.#deployments.get(provider) ?? {};
    names[name] = model;
    this.#deployments.set(provider, names);
  }

  /** @param route `provider/model`, or a route with several */
  model(name: string, route: Fields | string, from: ConfigPath): void {
    this.#models.set(name, { fields: route, from });
  }

  /** A member of another section, e.g. `timeouts`, `document`. */
  option(section: string, name: string, value: unknown): void {
    const fields = this.#others.get(section) ?? {};
    fields[name] = value;
    this.#others.set(section, fields);
  }

  /** Nothing of the other config has a place in the result, or a meaning here. */
  get isEmpty(): boolean {
    const isUsed = this.notes.some(({ kind }) => kind === 'taken' || kind === 'changed');
    return !isUsed && Object.keys(this.value()).length === 0;
  }

  /** The config as plain data. */
  value(): { readonly [section: string]: unknown } {
    const fieldsOf = (entries: ReadonlyMap<string, DraftEntry>): object =>
      Object.fromEntries([...entries].map(([id, { fields }]) => [id, fields]));
    const providers = new Map(
      [...this.#providers].map(([id, entry]) => {
        const deployments = this.#deployments.get(id);
        const fields =
          deployments === undefined || typeof entry.fields === 'string'
            ? entry.fields
            : { ...entry.fields, deployments };
        return [id, { ...entry, fields }];
      }),
    );
    return {
      ...(providers.size === 0 ? {} : { providers: fieldsOf(providers) }),
      ...(this.#models.size === 0 ? {} : { models: fieldsOf(this.#models) }),
      ...Object.fromEntries(this.#others),
    };
  }

  /** The file: comments say which line of the other config an entry comes from, and what was not taken. */
  text(origin: FileOrigin): string {
    const document = new Document(this.value(), { aliasDuplicateObjects: false });
    for (const [section, entries] of [
      ['providers', this.#providers],
      ['models', this.#models],
    ] as const) {
      const map = document.get(section, true);
      if (!isMap(map)) continue;
      for (const pair of map.items) {
        if (!isPair(pair) || !isScalar(pair.key)) continue;
        const entry = entries.get(String(pair.key.value));
        if (entry !== undefined) pair.key.commentBefore = ` ${origin.at(entry.from)}`;
      }
    }
    const body = Object.keys(this.value()).length === 0 ? '' : document.toString({ lineWidth: 0 });
    return `${this.#head(origin)}\n${spaced(body)}`;
  }

  #head(origin: FileOrigin): string {
    const open = inOrder(this.notes, origin).filter(({ kind }) => kind !== 'taken');
    const lines = open.map(
      ({ path, kind, text }) => `#   ${origin.at(path)}: ${kind}: ${origin.name(path)}: ${text}`,
    );
    const variables = [...this.variables].toSorted();
    return [
      `# Made from ${origin.file} (${origin.gateway}) by model-gateway import.`,
      '# Every option: docs/options.md. What applies: model-gateway check',
      ...(variables.length === 0 ? [] : [`# Read from the environment: ${variables.join(', ')}`]),
      ...(lines.length === 0 ? [] : ['# Not the same as there:', ...lines]),
      '',
    ].join('\n');
  }
}

/** How the other config is named in comments. */
export interface FileOrigin {
  readonly gateway: string;
  readonly file: string;
  /** `config.yaml:12` */
  at(path: ConfigPath): string;
  /** From 1; undefined where the path leads nowhere. */
  line(path: ConfigPath): number | undefined;
  /** `litellm_settings.cache` */
  name(path: ConfigPath): string;
}

/** The notes line by line. */
export function inOrder(notes: readonly Note[], origin: FileOrigin): readonly Note[] {
  return notes.toSorted((a, b) => (origin.line(a.path) ?? 0) - (origin.line(b.path) ?? 0));
}

/** An empty line before each section. */
function spaced(body: string): string {
  return body.replace(/\n(?=[a-z_]+:)/g, '\n\n');
}

/** `https://vllm.internal:8000/v1` → `vllm-internal-8000`; `${VLLM_BASE}` → `vllm-base`. */
export function slug(text: string): string {
  const host = URL.canParse(text) && !text.includes('${') ? new URL(text).host : text;
  const plain = host.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const trimmed = plain.replace(/^-/, '').replace(/-$/, '');
  return trimmed === '' ? 'server' : trimmed;
}
