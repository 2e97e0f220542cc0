/** A gateway where people sign in, and a browser that does so step by step. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { OidcSettings } from '../../src/config/oidc.ts';
import type { Log } from '../../src/core/runtime.ts';
import { createSealer, Secret } from '../../src/core/secret.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { adminRig, type Rig } from '../unit/admin/admin-rig.ts';
import { client, type LyingProvider } from './providers.ts';

export const dashboard = 'http://127.0.0.1:8687';
export const callback = `${dashboard}/api/oidc/callback`;

/** A jar of cookies that follows no redirect. */
export class Browser {
  readonly cookies = new Map<string, string>();

  async open(url: string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...Object.fromEntries(new Headers(init.headers)), cookie };
    const response = await fetch(url, { redirect: 'manual', ...init, headers });
    for (const set of response.headers.getSetCookie()) {
      const [pair = ''] = set.split(';', 1);
      const at = pair.indexOf('=');
      const value = pair.slice(at + 1);
      if (value === '') this.cookies.delete(pair.slice(0, at));
      else this.cookies.set(pair.slice(0, at), value);
    }
    return response;
  }
}

export function locationOf(response: Response): string {
  return response.headers.get('location') ?? '';
}

export function settingsFor(issuer: string): OidcSettings {
  return {
    issuer,
    clientId: client.id,
    clientSecret: new Secret(client.secret),
    url: dashboard,
    label: 'Test',
    scopes: 'openid profile',
    claims: { person: 'sub', name: 'name', groups: 'groups' },
    roles: { owner: ['admins'], operator: ['ops'], viewer: [] },
    teams: [
      { name: 'red', members: ['red'], leads: [], models: ['*'], keys: 2, expiresMs: Infinity },
    ],
  };
}

/** Seals what browsers keep of a sign-in. */
export const sealer = createSealer(new Uint8Array(32));

interface Change {
  readonly settings?: Partial<OidcSettings>;
  readonly log?: Log;
}

export async function rigFor(
  t: TestContext,
  issuer: string,
  { settings = {}, log = silentLog }: Change = {},
): Promise<Rig> {
  const oidc = { settings: { ...settingsFor(issuer), ...settings }, sealer };
  const rig = await adminRig(t, { log }, undefined, { oidc });
  // Tokens of a real provider are of now.
  rig.clock.time = Date.now();
  return rig;
}

/** Signs in at the provider's own forms. @returns the address of the callback */
export async function atProvider(at: string, account: string): Promise<string> {
  const browser = new Browser();
  let url = at;
  for (let steps = 0; steps < 12; steps++) {
    if (url.startsWith(callback)) return url;
    let response = await browser.open(url);
    const next = locationOf(response);
    if (next === '') {
      const page = await response.text();
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? 'login';
      const body = new URLSearchParams({ prompt, login: account, password: 'x' });
      response = await browser.open(url, { method: 'POST', body });
    }
    url = new URL(locationOf(response), url).href;
  }
  throw new Error('The provider sent nobody back.');
}

export interface Begun {
  readonly browser: Browser;
  readonly address: string;
}

/** A browser on its way to the provider. */
export async function begin(rig: Rig, browser = new Browser()): Promise<Begun> {
  const response = await browser.open(`${rig.url}/api/oidc/login`);
  assert.equal(response.status, 302);
  assert.match(response.headers.getSetCookie()[0] ?? '', /; HttpOnly; Secure; SameSite=Lax$/);
  return { browser, address: locationOf(response) };
}

/** The browser comes back from this address of the callback. */
export function returned(rig: Rig, { browser }: Begun, at: string): Promise<Response> {
  return browser.open(at.replace(dashboard, rig.url));
}

let codes = 0;

/** The browser comes back from a provider that made a token for it. */
export function returnedFrom(rig: Rig, begun: Begun, provider: LyingProvider): Promise<Response> {
  const asked = new URL(begun.address).searchParams;
  provider.nonceIs(asked.get('nonce') ?? '');
  codes += 1;
  const query = new URLSearchParams({ code: `code-${codes}`, state: asked.get('state') ?? '' });
  return returned(rig, begun, `${callback}?${query.toString()}`);
}
