/** A package registry on loopback: it has what is installed here, so that `npm install` can be tested without a network. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';

export interface Registry {
  readonly url: string;
  close(): void;
}

export interface Installed {
  readonly folder: string;
  readonly manifest: JsonObject;
}

/** By name, then version. */
type Packages = ReadonlyMap<string, ReadonlyMap<string, Installed>>;

/**
 * @param root the repository, installed
 * @param more packages that are not installed here
 */
export async function startRegistry(root: string, more: readonly Installed[]): Promise<Registry> {
  const packages = installedPackages(root, more);
  const server = createServer((request, response) => {
    const [path = '', version] = decodeURIComponent(request.url ?? '')
      .slice(1)
      .split('/-/');
    const versions = packages.get(path);
    const wanted = version === undefined ? undefined : versions?.get(version);
    if (wanted !== undefined) sendTarball(wanted.folder, response);
    else if (versions === undefined) response.writeHead(404).end('{}');
    else response.end(JSON.stringify(describe(path, versions, request.headers.host ?? '')));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function installedPackages(root: string, more: readonly Installed[]): Packages {
  const lock = tryParseObject(readFileSync(join(root, 'package-lock.json'), 'utf8')) ?? {};
  const found = new Map<string, Map<string, Installed>>();
  const add = (installed: Installed): void => {
    const { name, version } = installed.manifest;
    if (typeof name !== 'string' || typeof version !== 'string') return;
    const versions = found.get(name) ?? new Map<string, Installed>();
    found.set(name, versions.set(version, installed));
  };
  more.forEach(add);
  for (const place of Object.keys(isObject(lock['packages']) ? lock['packages'] : {})) {
    const file = join(root, place, 'package.json');
    if (place === '' || !existsSync(file)) continue;
    const manifest = tryParseObject(readFileSync(file, 'utf8')) ?? {};
    add({ folder: join(root, place), manifest });
  }
  return found;
}

function describe(
  name: string,
  versions: ReadonlyMap<string, Installed>,
  host: string,
): JsonObject {
  const listed = [...versions].map(([version, { manifest }]) => {
    const dist = { tarball: `http://${host}/${name}/-/${version}` };
    return [version, { ...manifest, dist }] as const;
  });
  return {
    name,
    'dist-tags': { latest: listed.at(-1)?.[0] ?? '' },
    versions: Object.fromEntries(listed),
  };
}

function sendTarball(folder: string, response: ServerResponse): void {
  const args = ['-c', '--exclude=./node_modules', '--transform=s,^\\.,package,', '-C', folder, '.'];
  spawn('tar', args, { stdio: ['ignore', 'pipe', 'inherit'] }).stdout.pipe(response);
}
