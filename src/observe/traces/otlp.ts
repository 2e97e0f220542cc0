/**
 * OTLP over HTTP (protobuf), by OpenTelemetry's own exporter. The only file that knows its packages; it is
 * loaded when traces are configured, and not before.
 */
import type { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { getCACertificates } from 'node:tls';
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { SpanData } from '../../core/call.ts';
import { nodeHttp } from '../../core/node-http.ts';
import type { SpanSender } from './tracer.ts';

type OtlpSpan = Parameters<OTLPTraceExporter['export']>[0][number];
type ExportResult = Parameters<Parameters<OTLPTraceExporter['export']>[1]>[0];

export interface OtlpOptions {
  /** With its path. */
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
  readonly timeoutMs: number;
  readonly compression: 'gzip' | 'none';
  /** PEM texts, for https: an authority besides the usual ones, a certificate of one's own. */
  readonly tls?: {
    readonly ca?: string | undefined;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
  };
  /** The attributes of all spans: `service.name` and others. */
  readonly resource: { readonly [name: string]: string };
  /** Of the gateway. */
  readonly version: string;
}

const kinds = { server: 1, client: 2 } as const;
const [unset, error] = [0, 2] as const;
/** After the exporter's own time limit, which a trickle of bytes can put off for ever. */
const graceMs = 2000;

export class OtlpSender implements SpanSender {
  readonly #options: OtlpOptions;
  readonly #agent: HttpAgent;
  readonly #exporter: OTLPTraceExporter;
  readonly #shared: Pick<OtlpSpan, 'resource' | 'instrumentationScope'>;

  static async open(options: OtlpOptions): Promise<OtlpSender> {
    // Not a static import: the joined program would require it, and the files for that are not installed.
    const { OTLPTraceExporter: Exporter } =
      await import('@opentelemetry/exporter-trace-otlp-proto');
    return new OtlpSender(options, Exporter);
  }

  private constructor(options: OtlpOptions, Exporter: typeof OTLPTraceExporter) {
    this.#options = options;
    const { url, headers, timeoutMs, compression, resource, version } = options;
    this.#agent = agentFor(options);
    this.#exporter = new Exporter({
      url,
      headers: { ...headers },
      timeoutMillis: timeoutMs,
      // Its type is an enum of these two words.
      compression: compression as NonNullable<
        ConstructorParameters<typeof OTLPTraceExporter>[0]
      >['compression'] &
        string,
      httpAgentOptions: () => this.#agent,
    });
    this.#shared = {
      resource: resourceOf(resource),
      instrumentationScope: { name: 'model-gateway', version },
    };
  }

  send(spans: readonly SpanData[]): Promise<string | undefined> {
    const { timeoutMs } = this.#options;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#agent.destroy();
        resolve(`no answer within ${timeoutMs} ms`);
      }, timeoutMs + graceMs).unref();
      const done = (result: ExportResult): void => {
        clearTimeout(timer);
        resolve(result.code === 0 ? undefined : (result.error?.message ?? 'not delivered'));
      };
      try {
        this.#exporter.export(
          spans.map((span) => this.#otlp(span)),
          done,
        );
      } catch (cause) {
        clearTimeout(timer);
        resolve(cause instanceof Error ? cause.message : String(cause));
      }
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #otlp(span: SpanData): OtlpSpan {
    const { trace, spanId, parentId, failure } = span;
    const traceState = trace.state === undefined ? {} : { traceState: stateOf(trace.state) };
    const context = (id: string): ReturnType<OtlpSpan['spanContext']> => ({
      traceId: trace.traceId,
      spanId: id,
      traceFlags: trace.sampled ? 1 : 0,
      ...traceState,
    });
    const own = context(spanId);
    return {
      ...this.#shared,
      name: span.name,
      kind: kinds[span.kind],
      spanContext: () => own,
      ...(parentId === undefined
        ? {}
        : { parentSpanContext: { ...context(parentId), isRemote: parentId === trace.parentId } }),
      startTime: time(span.startedAt),
      endTime: time(span.endedAt),
      duration: time(Math.max(0, span.endedAt - span.startedAt)),
      ended: true,
      status: failure === undefined ? { code: unset } : { code: error, message: failure },
      attributes: mutable(span.attributes),
      links: [],
      events: span.events.map(({ name, at, attributes }) => ({
        name,
        time: time(at),
        attributes: mutable(attributes),
      })),
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  }
}

function agentFor({ url, tls = {} }: OtlpOptions): HttpAgent {
  const sockets = { keepAlive: true, maxSockets: 1 };
  if (!url.startsWith('https:')) return new nodeHttp.Agent(sockets);
  const { ca, cert, key } = tls;
  return new HttpsAgent({
    ...sockets,
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  });
}

/** Seconds and nanoseconds. */
function time(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}

/** The exporter's types know no read-only lists; it changes none. */
function mutable(attributes: SpanData['attributes']): OtlpSpan['attributes'] {
  return attributes as OtlpSpan['attributes'];
}

function stateOf(text: string): NonNullable<ReturnType<OtlpSpan['spanContext']>['traceState']> {
  const state = {
    set: () => state,
    unset: () => state,
    get: () => undefined,
    serialize: () => text,
  };
  return state;
}

function resourceOf(attributes: OtlpOptions['resource']): OtlpSpan['resource'] {
  const resource: OtlpSpan['resource'] = {
    asyncAttributesPending: false,
    attributes,
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  return resource;
}
