/** Part of the composition root: the embedded engine of the parent, as a worker calls it. */
import { openaiChatUpstream } from '../dialects/openai-chat/upstream.ts';
import type { Provider } from '../core/provider.ts';
import type { LocalModelFile } from '../local-models/model-file.ts';
import { localProvider, localTraitsOf } from '../providers/local-provider.ts';
import type { LocalEngines } from '../providers/local.ts';
import type { LocalModels } from './local.ts';
import type { ParentOperations } from './worker-protocol.ts';
import type { Link } from '../workers/link.ts';

type ParentLink = Pick<Link<ParentOperations>, 'ask'>;

/** No engine was asked for: nothing listens there. */
const nowhere = '/nonexistent/engine.sock';

/** A model is loaded once for all processes, and may take minutes for it. */
export class EnginesOfParent implements LocalEngines, Pick<LocalModels, 'engines' | 'refresh'> {
  readonly provider: Provider;
  readonly engines = this;
  readonly #link: ParentLink;
  #models: readonly LocalModelFile[];
  /** By model. */
  readonly #sockets = new Map<string, string>();
  readonly #providers = new Map<string, Provider>();

  constructor(link: ParentLink, models: readonly LocalModelFile[]) {
    this.#link = link;
    this.#models = models;
    this.provider = { ...this.#providerOf(''), forModel: (name) => this.#forModel(name) };
  }

  /** The parent has looked at its folder. */
  heard(models: readonly LocalModelFile[]): void {
    this.#models = models;
  }

  models(): readonly LocalModelFile[] {
    return this.#models;
  }

  /** The parent's are told by the parent. */
  status(): readonly [] {
    return [];
  }

  async refresh(): Promise<void> {}
  replace(): void {}
  prewarm(): void {}
  async stop(): Promise<void> {}

  #forModel(name: string): Provider {
    const known = this.#providers.get(name);
    if (known !== undefined) return known;
    const provider = this.#providerOf(name);
    this.#providers.set(name, provider);
    return provider;
  }

  #providerOf(name: string): Provider {
    return localProvider({
      dialect: openaiChatUpstream,
      socketPath: () => this.#sockets.get(name) ?? nowhere,
      traits: (model) => {
        const file = this.#models.find((each) => each.name === model);
        return file === undefined ? undefined : localTraitsOf(file);
      },
      wake: async () => {
        const path = await this.#link.ask('wakeEngine', [name], Number.POSITIVE_INFINITY);
        this.#sockets.set(name, path);
      },
    });
  }
}
