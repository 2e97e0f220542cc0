/**
 * What the tests of the dashboard play on: a gateway process of its own, two scripted upstreams behind
 * it, a key, and one real browser. One of each a file: starting them takes the time.
 */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import type { JsonObject } from '../../src/json/value.ts';
import { Instance, type MadeKey } from '../cluster/instance.ts';
import { temporaryFolder } from '../support/folders.ts';
import { providerAt } from '../support/gateway.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { until } from '../support/postgres-store.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { openBrowser } from './browser.ts';
import { buildDashboard } from './built.ts';
import { onPage, type Viewing, type WatchedPage } from './watched-page.ts';

export interface Stage {
  readonly gateway: Instance;
  readonly upstreams: { readonly chat: ScriptedUpstream; readonly messages: ScriptedUpstream };
  readonly browser: Browser;
  /** May call everything. */
  readonly key: MadeKey;
  /** A page with a signed-in user, unless `anonymous`; fails on every complaint of the page. */
  view(
    path: string,
    body: (page: Page, watched: WatchedPage) => Promise<void>,
    how?: StageViewing,
  ): Promise<void>;
  /** Calls the data plane. */
  call(path: string, body: unknown, sending?: Sending): Promise<Reply>;
  /** Resolves when this number of calls of the model is in the ledger. */
  recorded(model: string, count: number): Promise<readonly JsonObject[]>;
  stop(): Promise<void>;
}

export interface StageViewing extends Omit<Viewing, 'session'> {
  readonly anonymous?: true;
}

/** Routes of every stage; `fast` fails over, `<img…` is a name that must stay a name. */
const models = {
  fast: { targets: ['up-chat/primary', 'up-messages/spare'] },
  steady: 'up-chat/steady',
} as const;

/**
 * Undefined where this machine has no browser.
 * @param seed fills the data directory before the gateway starts
 */
export async function startStage(
  config: JsonObject = {},
  seed?: (directory: string) => Promise<unknown>,
): Promise<Stage | undefined> {
  const browser = await openBrowser();
  if (browser === undefined) return undefined;
  await buildDashboard();
  const upstreams = {
    chat: await ScriptedUpstream.start(),
    messages: await ScriptedUpstream.start(),
  };
  const providers = {
    'up-chat': providerAt('chat', upstreams.chat.port),
    'up-messages': providerAt('messages', upstreams.messages.port),
  };
  const { models: more, ...others } = config;
  const directory = temporaryFolder('stage');
  await seed?.(directory);
  const gateway = await Instance.start({
    storage: 'sqlite',
    directory,
    upstream: upstreams.chat.port,
    config: {
      providers,
      // Its routes lead to its upstreams: with other providers there are none.
      models: { ...(others['providers'] === undefined ? models : {}), ...(more as JsonObject) },
      ...others,
    },
  });
  const key = await gateway.makeKey({ name: 'everything' });
  let session: Viewing['session'];
  const view: Stage['view'] = async (path, body, { anonymous, ...how } = {}) => {
    if (anonymous === undefined) session ??= await logIn(browser, gateway.adminUrl);
    const viewing = { ...how, ...(anonymous === undefined ? { session } : {}) };
    await onPage(browser, gateway.adminUrl, viewing, async (page, watched) => {
      await page.goto(gateway.adminUrl + path);
      await body(page, watched);
    });
  };
  return {
    gateway,
    upstreams,
    browser,
    key,
    view,
    call: (path, body, sending = {}) =>
      send(gateway.url + path, body, {
        ...sending,
        headers: { authorization: `Bearer ${key.key}`, ...sending.headers },
      }),
    recorded: (model, count) => recorded(gateway, model, count),
    stop: async () => {
      await browser.close();
      await gateway.stop();
      await Promise.all([upstreams.chat.close(), upstreams.messages.close()]);
    },
  };
}

/** A session's cookies. Logging in is limited to a few a minute: once a file, by the form. */
async function logIn(browser: Browser, home: string): Promise<NonNullable<Viewing['session']>> {
  let state: NonNullable<Viewing['session']> | undefined;
  await onPage(browser, home, {}, async (page, { context }) => {
    await page.goto(`${home}/`);
    await fillLogin(page);
    state = await context.storageState();
  });
  assert.ok(state);
  return state;
}

/** Fills the form of the login page and waits until it let us in. */
export async function fillLogin(page: Page, token = adminToken): Promise<void> {
  await page.getByLabel('Admin token').fill(token);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').first().waitFor();
}

async function recorded(
  gateway: Instance,
  model: string,
  count: number,
): Promise<readonly JsonObject[]> {
  let rows: readonly JsonObject[] = [];
  await until(async () => {
    const path = `/api/calls?limit=1000&model=${encodeURIComponent(model)}`;
    const { json } = await gateway.admin('GET', path);
    rows = json['calls'] as readonly JsonObject[];
    return rows.length >= count;
  }, `${count} calls of ${model} are recorded`);
  return rows;
}
