/** `webhooks:` of the file: who is told what the gateway has to tell by itself. */
import { forbiddenHost, isForbiddenHost } from '../core/forbidden-address.ts';
import { Secret } from '../core/secret.ts';
import type { CheckedFile } from './config-file.ts';
import { pathText, type ConfigIssue } from './config-error.ts';
import type { OriginLine, WebhookSettings } from './settings.ts';

/** The hooks; addresses that cannot be one are reported, and never quoted: they may hold a secret. */
export function readWebhooks(
  file: CheckedFile | undefined,
  scope: { report(issue: ConfigIssue): void },
): readonly WebhookSettings[] {
  const forms = file?.content.webhooks ?? [];
  return forms.map(({ url, secret, events }, i) => {
    const problem = addressProblem(url);
    if (problem !== undefined && file !== undefined) {
      scope.report(file.issue(['webhooks', i, 'url'], problem));
    }
    return { url, secret: new Secret(secret), ...(events === undefined ? {} : { events }) };
  });
}

function addressProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return 'is no http:// or https:// address';
  }
  if (url.username !== '' || url.password !== '') return 'holds a user or password';
  if (isForbiddenHost(url.hostname)) return forbiddenHost;
  return undefined;
}

/** What `check` shows: the host only, since paths of hooks are secrets as a rule. */
export function webhookOrigins(
  webhooks: readonly WebhookSettings[],
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  if (file === undefined) return [];
  return webhooks.map(({ url }, i) => {
    const path = ['webhooks', i];
    const shown = URL.canParse(url) ? new URL(url).origin : '[secret]';
    return { path: pathText(path), value: shown, origin: file.where(path) };
  });
}
