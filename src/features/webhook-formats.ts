/**
 * What is posted to a webhook: the event itself, signed, or a message in the form of a chat or paging service, whose
 * published formats these are (Slack incoming webhooks, Teams workflows with Adaptive Cards 1.4, Discord webhooks,
 * PagerDuty Events API v2).
 */
import { createHmac } from 'node:crypto';
import type { Secret } from '../core/secret.ts';
import type { JsonObject } from '../json/value.ts';
import { type GatewayEvent, type Severity, tellEvent } from './events.ts';

export const webhookFormats = ['json', 'slack', 'teams', 'discord', 'pagerduty'] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

/** Formats whose hooks have a secret: it signs the event, or routes it. The others have it in their address. */
export const formatsWithSecret: readonly WebhookFormat[] = ['json', 'pagerduty'];

const message: {
  readonly [F in Exclude<WebhookFormat, 'json'>]: (
    event: GatewayEvent,
    secret: Secret | undefined,
  ) => JsonObject;
} = {
  slack: (event) => ({ text: `${marks[severityOf(event)]} ${escaped(lineOf(event))}` }),
  teams: (event) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            { type: 'TextBlock', weight: 'bolder', wrap: true, text: tellEvent(event).subject },
            { type: 'TextBlock', wrap: true, text: lineOf(event) },
          ],
        },
      },
    ],
  }),
  discord: (event) => ({
    // Names that look like mentions notify no person.
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title: cut(tellEvent(event).subject, 256),
        description: cut(lineOf(event), 4096),
        color: colours[severityOf(event)],
        timestamp: event.created_at,
      },
    ],
  }),
  pagerduty: (event, secret) => {
    const { severity, subject, text, isResolved } = tellEvent(event);
    return {
      routing_key: secret?.reveal() ?? '',
      event_action: isResolved === true ? 'resolve' : 'trigger',
      dedup_key: cut(`model-gateway ${event.source} ${subject}`, 255),
      payload: {
        summary: cut(text, 1024),
        source: event.source,
        severity,
        timestamp: event.created_at,
        component: 'model-gateway',
        class: event.type,
        custom_details: event.data,
      },
    };
  },
};

/** Header names and values in turn, and the body. @param seconds wall time, for the signature */
export function webhookRequest(
  event: GatewayEvent,
  hook: { readonly format?: WebhookFormat; readonly secret?: Secret },
  seconds: number,
): { readonly headers: readonly string[]; readonly body: string } {
  const { format = 'json', secret } = hook;
  const json = ['content-type', 'application/json'];
  if (format !== 'json') {
    return { headers: json, body: JSON.stringify(message[format](event, secret)) };
  }
  const body = JSON.stringify(event);
  const key = secret?.reveal() ?? '';
  const signed = createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex');
  const headers = [
    ...json,
    'x-gateway-event',
    event.type,
    'x-gateway-delivery',
    event.id,
    'x-gateway-signature',
    `t=${seconds},v1=${signed}`,
  ];
  return { headers, body };
}

function lineOf(event: GatewayEvent): string {
  return `${tellEvent(event).text} (${event.source})`;
}

function severityOf(event: GatewayEvent): Severity | 'resolved' {
  const { severity, isResolved } = tellEvent(event);
  return isResolved === true ? 'resolved' : severity;
}

const marks = {
  info: ':information_source:',
  warning: ':warning:',
  error: ':red_circle:',
  resolved: ':white_check_mark:',
} as const;

const colours = { info: 0x0f62b5, warning: 0xb4530b, error: 0xb3261e, resolved: 0x146c43 } as const;

/** Slack reads `<…>` as links and mentions. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
