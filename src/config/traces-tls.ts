/** Certificates for a collector behind https://: of the file, else of OpenTelemetry's variables. */
import { dirname } from 'node:path';
import { Secret } from '../core/secret.ts';
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './config-error.ts';
import type { Environment } from './references.ts';
import { readPem, type AddressScope } from './server-address.ts';
import type { ClientTls } from './settings.ts';

const variables = { ca: 'CERTIFICATE', cert: 'CLIENT_CERTIFICATE', key: 'CLIENT_KEY' } as const;
const words = {
  ca: "the collector's authority",
  cert: "the client's certificate",
  key: "the key of the client's certificate",
} as const;

type Part = keyof typeof variables;

interface Scope {
  readonly file: CheckedFile | undefined;
  readonly env: Environment;
  report(issue: ConfigIssue): void;
}

/** @param named paths in the file, relative to it; those of variables are relative to the working directory. */
export function readTracesTls(
  named: { readonly [P in Part]?: string | undefined },
  scope: Scope,
): ClientTls | undefined {
  const ca = readPart('ca', named.ca, scope);
  const cert = readPart('cert', named.cert, scope);
  const key = readPart('key', named.key, scope);
  if ((cert === undefined) !== (key === undefined)) {
    const path = 'traces';
    const message = "names one of the client's certificate and its key; both are needed";
    scope.report(scope.file?.issue(['traces'], message) ?? { path, message });
  }
  if (ca === undefined && cert === undefined) return undefined;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key: new Secret(key) }),
  };
}

function readPart(part: Part, named: string | undefined, scope: Scope): string | undefined {
  const { file, env, report } = scope;
  if (named !== undefined && file !== undefined) {
    const complain = (message: string): void => report(file.issue(['traces', part], message));
    return pemOf(part, named, { directory: dirname(file.place.path), complain });
  }
  for (const signal of ['TRACES_', '']) {
    const variable = `OTEL_EXPORTER_OTLP_${signal}${variables[part]}`;
    const path = env[variable] ?? '';
    const complain = (message: string): void => report({ path: variable, message });
    if (path !== '') return pemOf(part, path, { directory: process.cwd(), complain });
  }
  return undefined;
}

function pemOf(part: Part, path: string, scope: AddressScope): string | undefined {
  const text = readPem(path, words[part], scope);
  return text === 'wrong' ? undefined : text;
}
