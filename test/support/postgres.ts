/**
 * A PostgreSQL server for tests, from the machine's own packages. Where there is none, tests say so
 * (`withPostgres` of with-servers.ts starts one for a suite, and ends it).
 */
import { existsSync, globSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, type QueryResult } from 'pg';
import { readPostgres } from '../../src/config/storage.ts';
import type { ServerAddress } from '../../src/core/addresses.ts';
import { findProgram, freePort, runToEnd, serverFolder, ServerProcess } from './server-process.ts';

export const noPostgres =
  'PostgreSQL is not on this machine (apt-get install postgresql): its tests are left out';

/** A password that must stand nowhere. */
export const postgresPassword = 'canary-pg-5b1e';
const user = 'gateway';
/** Longer than a test waits until it asks again. */
const idleMs = 250;

/**
 * Undefined where PostgreSQL is not installed.
 * @param settings further ones, `name=value`
 */
export async function startPostgres(
  settings: readonly string[] = [],
): Promise<TestPostgres | undefined> {
  const folders = globSync('/usr/lib/postgresql/*/bin').sort().toReversed();
  const initdb = findProgram(['initdb'], folders);
  const postgres = findProgram(['postgres'], folders);
  if (initdb === undefined || postgres === undefined) return undefined;
  const folder = serverFolder('pg');
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, postgresPassword);
  const data = join(folder, 'data');
  const access = ['-U', user, '--pwfile', passwordFile, '--auth=scram-sha-256'];
  const form = ['-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  await initialise(data, async () => {
    await runToEnd(initdb, ['-D', data, ...access, ...form]);
  });
  const port = await freePort();
  const server = new TestPostgres({ program: postgres, data, folder, port, settings });
  await server.start();
  return server;
}

/**
 * Makes a data directory, or copies the one that an earlier suite of the same test run has made: initdb takes longer
 * than most suites.
 */
async function initialise(data: string, make: () => Promise<void>): Promise<void> {
  const shared = process.env['TEST_SERVER_FOLDER'];
  if (shared === undefined) return make();
  const template = join(shared, 'postgres');
  if (existsSync(template)) return runToEnd('cp', ['-a', template, data]);
  await make();
  const copy = `${template}-${process.pid}-${Date.now()}`;
  await runToEnd('cp', ['-a', data, copy]);
  try {
    renameSync(copy, template);
  } catch {
    // Another suite was first, and its directory stays.
  }
}

/** As the config reads it. */
export function postgresAddress(url: string): ServerAddress {
  const address = readPostgres(url, {
    directory: '/',
    complain: (message) => {
      throw new Error(message);
    },
  });
  if (address === undefined) throw new Error('no address');
  return address;
}

interface Parts {
  readonly program: string;
  readonly data: string;
  readonly folder: string;
  readonly port: number;
  readonly settings?: readonly string[];
}

export class TestPostgres {
  readonly port: number;
  readonly #parts: Parts;
  #process: ServerProcess | undefined;
  #databases = 0;
  /** Connections of the test that wait for its next query, by address. */
  readonly #idle = new Map<string, Client>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.port = parts.port;
  }

  async start(): Promise<void> {
    const { program, data, folder, port, settings: more = [] } = this.#parts;
    // Nothing here outlives the machine: no syncs. A killed server still loses nothing.
    const settings = [
      `port=${port}`,
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${folder}`,
      'fsync=off',
      'full_page_writes=off',
      'max_connections=100',
      'shared_buffers=32MB',
      ...more,
    ];
    const server = new ServerProcess(program, ['-D', data, ...settings.flatMap((s) => ['-c', s])]);
    this.#process = server;
    await server.untilReady(() => this.#answers());
  }

  /** Another server that follows this one, and takes no writes. Undefined without `pg_basebackup`. */
  async startReplica(): Promise<TestPostgres | undefined> {
    const { program } = this.#parts;
    const copier = findProgram(
      ['pg_basebackup'],
      globSync('/usr/lib/postgresql/*/bin').toReversed(),
    );
    if (copier === undefined) return undefined;
    const folder = serverFolder('pg');
    const data = join(folder, 'data');
    // -R: it begins as a replica, with the address of its primary.
    await runToEnd(copier, [
      '-D',
      data,
      '-d',
      this.url('postgres'),
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
    ]);
    const replica = new TestPostgres({ program, data, folder, port: await freePort() });
    await replica.start();
    return replica;
  }

  /** `fast` ends all connections (57P01), `immediate` dies like a crash. */
  async stop(how: 'fast' | 'immediate' = 'fast'): Promise<void> {
    const idle = [...this.#idle.values()];
    this.#idle.clear();
    await Promise.all(idle.map((client) => client.end().catch(() => undefined)));
    await this.#process?.end(how === 'fast' ? 'SIGINT' : 'SIGQUIT');
    this.#process = undefined;
  }

  /** `postgres://…` of a new database. */
  async makeDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `gw${this.#databases}`;
    await this.#once(`CREATE DATABASE ${name}`);
    return this.url(name);
  }

  /**
   * Deletes what is in the tables of a gateway. A new database with its tables takes five times the CPU.
   */
  async empty(url: string): Promise<void> {
    const tables = await this.query(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'gateway_schema'",
      url,
    );
    const deletes = tables.map(({ tablename }) => `DELETE FROM ${String(tablename)};`);
    // Without triggers: the audit log refuses deletes.
    const role = 'session_replication_role';
    await this.query(`SET ${role} = replica; ${deletes.join(' ')} RESET ${role}`, url);
  }

  url(database: string): string {
    return `postgres://${user}:${postgresPassword}@127.0.0.1:${this.port}/${database}`;
  }

  /** Through the Unix socket. */
  socketUrl(database: string): string {
    const { folder } = this.#parts;
    return `postgres://${user}:${postgresPassword}@${encodeURIComponent(folder)}:${this.port}/${database}`;
  }

  /** For the test itself; what it writes is no user's text. */
  async query(sql: string, url = this.url('postgres')): Promise<QueryResult['rows']> {
    const idle = this.#idle.get(url);
    this.#idle.delete(url);
    const client = idle ?? (await this.#connect(url));
    try {
      const { rows } = await client.query(sql);
      this.#keep(url, client);
      return rows;
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }

  /** Leaves no connection behind: some tests count those of their server. */
  async #once(sql: string): Promise<void> {
    const client = await this.#connect(this.url('postgres'));
    await client.query(sql).finally(() => client.end());
  }

  async #connect(url: string): Promise<Client> {
    const client = new Client({ connectionString: url });
    // A server that ends meanwhile fails the query.
    client.on('error', () => this.#forget(url, client));
    await client.connect();
    return client;
  }

  /** For the next query of a test that asks again and again: each password takes the server and this process 5 ms. */
  #keep(url: string, client: Client): void {
    if (this.#idle.has(url)) void client.end().catch(() => undefined);
    else {
      this.#idle.set(url, client);
      setTimeout(() => {
        if (this.#forget(url, client)) void client.end().catch(() => undefined);
      }, idleMs);
    }
  }

  #forget(url: string, client: Client): boolean {
    return this.#idle.get(url) === client && this.#idle.delete(url);
  }

  close(): Promise<void> {
    return this.stop('immediate');
  }

  async #answers(): Promise<boolean> {
    try {
      await this.#once('SELECT 1');
      return true;
    } catch {
      return false;
    }
  }
}
