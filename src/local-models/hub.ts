/** The place that `hf:` means: Hugging Face's hub, or a mirror of it. */
import { Secret } from '../core/secret.ts';
import { PullError } from './pull-error.ts';

export type Environment = { readonly [name: string]: string | undefined };

const customary = 'https://huggingface.co/';

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
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.[\d.]+$/.test(hostname);
}

/** llama.cpp reads MODEL_ENDPOINT first, the hub's own programs read HF_ENDPOINT. */
function endpointOf(env: Environment): URL {
  const name = (env['MODEL_ENDPOINT'] ?? '') === '' ? 'HF_ENDPOINT' : 'MODEL_ENDPOINT';
  const text = env[name] ?? '';
  if (text === '') return new URL(customary);
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
