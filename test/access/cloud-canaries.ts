/**
 * Every cloud on one server that quotes whatever it is sent, with a secret of its own in every place of a credential:
 * keys, private keys, tokens that were fetched, and what lets a machine fetch them (issue 22).
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { JsonObject } from '../../src/json/value.ts';
import { eventStreamType, exceptionMessage } from '../upstream/aws.ts';
import { privateKey } from '../upstream/google-tokens.ts';

const canary = (name: string): string => `CANARY-${name}-${randomBytes(12).toString('hex')}`;

const secrets = {
  geminiKey: canary('gemini-key'),
  googleToken: canary('google-token'),
  googleMachineToken: canary('google-machine-token'),
  googleRefusedToken: canary('google-refresh-token'),
  awsSecretKey: canary('aws-secret-key'),
  awsSessionToken: canary('aws-session-token'),
  bedrockKey: canary('bedrock-key'),
  containerToken: canary('container-token'),
  machineSecretKey: canary('aws-machine-secret-key'),
  machineSessionToken: canary('aws-machine-session-token'),
  imdsToken: canary('imds-token'),
  azureKey: canary('azure-key'),
  foundryKey: canary('foundry-key'),
  entraSecret: canary('entra-secret'),
  entraToken: canary('entra-token'),
  refusedSecret: canary('refused-secret'),
  identityHeader: canary('identity-header'),
  managedToken: canary('managed-token'),
  // A line of the file: text with line ends is not found where it is quoted.
  googlePrivateKey: privateKey.split('\n')[5] ?? '',
};

type Kind = 'gemini' | 'claude' | 'nova' | 'deployment';

/** What is asked of each provider, by the kind of its names. */
const kinds: { readonly [provider: string]: readonly Kind[] } = {
  gem: ['gemini'],
  vex: ['gemini', 'claude'],
  'vex-machine': ['gemini'],
  'vex-refused': ['gemini'],
  bed: ['claude', 'nova'],
  'bed-key': ['claude', 'nova'],
  'bed-container': ['nova'],
  'bed-instance': ['claude'],
  mantle: ['nova'],
  az: ['deployment'],
  entra: ['deployment'],
  'entra-refused': ['deployment'],
  managed: ['deployment'],
  found: ['deployment', 'claude'],
};

/** The answer that the server gives is in the name of the model. */
const answers = ['s401', 's403', 's400', 's500', 's200'] as const;

function nameOf(kind: Kind, answer: string): string {
  if (kind === 'gemini') return `gemini-2.5-${answer}`;
  if (kind === 'nova') return `amazon.nova-${answer}-v1:0`;
  return kind === 'claude' ? `anthropic.claude-${answer}` : `deployment-${answer}`;
}

export class CloudCanaries {
  readonly secrets = secrets;
  readonly #server: Server;
  /** Which secrets came to the server: whether the test tests anything. */
  readonly arrived = new Set<string>();
  /** What a collector of spans got. */
  spans = '';

  constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const body = Buffer.concat(pieces).toString('utf8');
        if (request.url !== '/v1/traces') return this.#answer(request, body, response);
        this.spans += body;
        response.end();
      });
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** `127.0.0.1:port` */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get models(): readonly string[] {
    return Object.entries(kinds).flatMap(([provider, all]) =>
      all.flatMap((kind) =>
        answers.map((answer) => {
          const name = nameOf(kind, answer);
          const ownName = provider === 'vex' || provider === 'found';
          return `${provider}/${ownName ? name.replace('anthropic.', '') : name}`;
        }),
      ),
    );
  }

  /** What the gateway's environment has besides. */
  get env(): { readonly [name: string]: string } {
    const url = `http://${this.host}`;
    return {
      GCE_METADATA_HOST: this.host,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/container`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: secrets.containerToken,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: url,
      AZURE_AUTHORITY_HOST: url,
      IDENTITY_ENDPOINT: `${url}/identity`,
      IDENTITY_HEADER: secrets.identityHeader,
      AWS_SESSION_KEY_OF_TEST: secrets.awsSecretKey,
    };
  }

  /** The providers of the config. @param folder for the files that Google's tools write */
  providers(folder: string): JsonObject {
    const url = `http://${this.host}`;
    const google = join(folder, 'google.json');
    const user = join(folder, 'user.json');
    writeFileSync(
      google,
      JSON.stringify({
        type: 'service_account',
        client_email: 'gateway@acme-ml.iam.gserviceaccount.com',
        private_key: privateKey,
        token_uri: `${url}/google`,
      }),
    );
    writeFileSync(
      user,
      JSON.stringify({
        type: 'authorized_user',
        client_id: 'app.apps.googleusercontent.com',
        client_secret: secrets.refusedSecret,
        refresh_token: secrets.googleRefusedToken,
        token_uri: `${url}/refused`,
      }),
    );
    const vertex = { like: 'vertex', project: 'acme-ml', base_url: url };
    const bedrock = { like: 'bedrock', region: 'eu-central-1', endpoint: url };
    const entra = { like: 'azure', base_url: url, auth: 'entra', client_id: 'app-1' };
    return {
      gem: { like: 'gemini', base_url: `${url}/v1beta`, api_key: secrets.geminiKey },
      vex: { ...vertex, credentials: google },
      'vex-machine': { ...vertex, auth: 'metadata' },
      'vex-refused': { ...vertex, credentials: user },
      bed: {
        ...bedrock,
        access_key_id: 'AKIA0000000000000000',
        secret_access_key: '${AWS_SESSION_KEY_OF_TEST}',
        session_token: secrets.awsSessionToken,
      },
      'bed-key': { ...bedrock, api_key: secrets.bedrockKey },
      'bed-container': { ...bedrock, auth: 'container' },
      'bed-instance': { ...bedrock, auth: 'instance' },
      mantle: { ...bedrock, like: 'bedrock-mantle', api_key: secrets.bedrockKey },
      az: { like: 'azure', base_url: url, api_key: secrets.azureKey },
      entra: { ...entra, tenant_id: 'good', client_secret: secrets.entraSecret },
      'entra-refused': { ...entra, tenant_id: 'refused', client_secret: secrets.refusedSecret },
      managed: { like: 'foundry', base_url: url, auth: 'managed_identity' },
      found: { like: 'foundry', base_url: url, api_key: secrets.foundryKey },
    };
  }

  #answer(request: IncomingMessage, body: string, response: ServerResponse): void {
    const { url = '', headers } = request;
    const form = Object.fromEntries(new URLSearchParams(body));
    const said = JSON.stringify({ ...headers, ...form }).slice(0, 4000);
    for (const [name, secret] of Object.entries(secrets)) {
      if (said.includes(secret)) this.arrived.add(name);
    }
    const granted = tokenAt(url);
    if (granted !== undefined) {
      response.writeHead(200, { 'metadata-flavor': 'Google', 'content-type': 'application/json' });
      response.end(typeof granted === 'string' ? granted : JSON.stringify(granted));
      return;
    }
    const quoted = `The credential of ${said} is odd.`;
    const status = Number(/s(\d{3})/.exec(url)?.[1] ?? /-s(\d{3})/.exec(body)?.[1] ?? 401);
    const error = { code: status, type: 'odd', status: 'UNAUTHENTICATED', message: quoted };
    const envelope = { type: 'error', message: quoted, error_description: quoted, error };
    if (status !== 200) {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(envelope));
      return;
    }
    const isAws = url.startsWith('/model/');
    response.writeHead(200, { 'content-type': isAws ? eventStreamType : 'text/event-stream' });
    response.end(
      isAws
        ? exceptionMessage('validationException', { message: quoted })
        : `event: error\ndata: ${JSON.stringify(envelope)}\n\n`,
    );
  }
}

/** What token servers and services of machines answer; undefined = it is none, or one that refuses. */
function tokenAt(url: string): JsonObject | string | undefined {
  const token = (value: string): JsonObject => ({ access_token: value, expires_in: 3600 });
  const keys = {
    AccessKeyId: 'ASIA0000000000000000',
    SecretAccessKey: secrets.machineSecretKey,
    Token: secrets.machineSessionToken,
    Expiration: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const roles = '/latest/meta-data/iam/security-credentials/';
  const served: readonly (readonly [string, JsonObject | string])[] = [
    ['/google', token(secrets.googleToken)],
    ['/computeMetadata/', token(secrets.googleMachineToken)],
    ['/good/', token(secrets.entraToken)],
    ['/identity', token(secrets.managedToken)],
    ['/container', keys],
    ['/latest/api/token', secrets.imdsToken],
    [`${roles}role`, keys],
    [roles, 'role'],
  ];
  return served.find(([path]) => url.startsWith(path))?.[1];
}
