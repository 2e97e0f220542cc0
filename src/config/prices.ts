/** `prices:` of the file: what models cost, where that is not or not rightly known. */
import {
  decimalText,
  ratePerMillion,
  type Price,
  type PriceSettings,
  type Rates,
} from '../core/money.ts';
import type { CheckedFile } from './config-file.ts';
import { type ConfigIssue, pathText, suggestion } from './errors.ts';
import type { KnownProviders } from './providers.ts';
import type { ConfigFile } from './schema.ts';
import type { OriginLine } from './settings.ts';

export interface PriceScope {
  readonly known: KnownProviders;
  report(issue: ConfigIssue): void;
}

type PriceForm = NonNullable<ConfigFile['prices']>[string];
type ServiceForm = NonNullable<PriceForm['service_tiers']>[string];
type TierForm = NonNullable<PriceForm['tiers']>[number];

/** The name that stands for models without a price. */
const otherwise = 'default';

/** The prices; a provider that does not exist and tiers that leave something open are reported. */
export function readPrices(file: CheckedFile | undefined, scope: PriceScope): PriceSettings {
  if (file === undefined) return { models: [] };
  const forms = Object.entries(file.content.prices ?? {});
  for (const [pattern, form] of forms) {
    checkProvider(pattern, file, scope);
    checkTiers([pattern, form], file, scope);
  }
  const models = forms
    .filter(([pattern]) => pattern !== otherwise)
    .map(([pattern, form]) => ({ pattern, price: readPrice(form, whereOf(file, pattern)) }));
  const form = file.content.prices?.[otherwise];
  return {
    models,
    ...(form === undefined
      ? {}
      : { otherwise: readPrice(form, `${whereOf(file, otherwise)} (default)`) }),
  };
}

function whereOf(file: CheckedFile, pattern: string): string {
  return file.where(['prices', pattern]);
}

function checkProvider(pattern: string, file: CheckedFile, { known, report }: PriceScope): void {
  const provider = pattern.slice(0, Math.max(0, pattern.indexOf('/')));
  if (provider === '' || provider.includes('*')) return;
  if (file.declared.has(provider) || known.has(provider)) return;
  const hint = suggestion(provider, [...file.declared, ...known.keys()]);
  report(file.issue(['prices', pattern], `there is no provider "${provider}"${hint}`));
}

/** All but input and output, by the members of a price. */
const optionalRates = [
  ['cache_read', 'cacheRead'],
  ['cache_write', 'cacheWrite'],
  ['cache_write_1h', 'cacheWriteLong'],
  ['reasoning', 'reasoning'],
  ['audio_input', 'audioInput'],
  ['image_input', 'imageInput'],
  ['video_input', 'videoInput'],
  ['audio_cache_read', 'audioCacheRead'],
  ['audio_output', 'audioOutput'],
  ['image_output', 'imageOutput'],
] as const;

/** A rate that a tier omits would fall back to its more expensive input rate, which is never intended. */
function checkTiers(
  [pattern, form]: readonly [string, PriceForm],
  file: CheckedFile,
  { report }: PriceScope,
): void {
  for (const [name, service] of Object.entries(form.service_tiers ?? {})) {
    const path = ['prices', pattern, 'service_tiers', name];
    for (const [rate] of optionalRates) {
      if (form[rate] !== undefined && service[rate] === undefined)
        report(file.issue(path, `${rate} is missing`));
    }
    if (form.tiers !== undefined && service.tiers === undefined)
      report(
        file.issue(path, 'tiers are missing: set the rates of long prompts for this service tier'),
      );
    checkLengths(service, (i, message) => report(file.issue([...path, 'tiers', i], message)));
  }
  checkLengths(form, (i, message) => report(file.issue(['prices', pattern, 'tiers', i], message)));
}

function checkLengths(
  form: PriceForm | ServiceForm,
  report: (tier: number, message: string) => void,
): void {
  let last = -1;
  form.tiers?.forEach((tier, i) => {
    const complain = (message: string): void => report(i, message);
    if (tier.above <= last)
      complain(`above must increase from tier to tier; the tier before has ${last}`);
    last = tier.above;
    for (const [name] of optionalRates) {
      if (form[name] !== undefined && tier[name] === undefined) complain(`${name} is missing`);
    }
  });
}

function readPrice(form: PriceForm, source: string): Price {
  const of = (service: PriceForm | ServiceForm, from: string): Price => ({
    rates: readRates(service),
    tiers: (service.tiers ?? []).map((tier) => ({ above: tier.above, rates: readRates(tier) })),
    ...(form.call === undefined ? {} : { call: form.call }),
    ...(form.per_image === undefined ? {} : { perImage: form.per_image }),
    ...(form.web_search === undefined ? {} : { webSearch: form.web_search }),
    ...(form.file_search === undefined ? {} : { fileSearch: form.file_search }),
    source: from,
  });
  const plain = of(form, source);
  const services = Object.entries(form.service_tiers ?? {});
  if (services.length === 0) return plain;
  const named = services.map(
    ([name, service]) => [name, of(service, `${source} (${name})`)] as const,
  );
  return { ...plain, service: new Map([['standard', plain], ...named]) };
}

function readRates(form: PriceForm | ServiceForm | TierForm): Rates {
  const rates: { -readonly [K in keyof Rates]: Rates[K] } = {
    input: form.input,
    output: form.output,
  };
  for (const [name, member] of optionalRates) {
    const rate = form[name];
    if (rate !== undefined) rates[member] = rate;
  }
  return rates;
}

/** One line a price. */
export function priceOrigins(
  { models, otherwise: fallback }: PriceSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  if (file === undefined) return [];
  const line = (pattern: string, price: Price): OriginLine => ({
    path: pathText(['prices', pattern]),
    value: priceText(price),
    origin: whereOf(file, pattern),
  });
  return [
    ...models.map(({ pattern, price }) => line(pattern, price)),
    ...(fallback === undefined ? [] : [line(otherwise, fallback)]),
  ];
}

/** `input 0.25, output 2, above 200000: input 0.5, output 3`, in dollars per million tokens. */
function priceText(price: Price): string {
  const { rates, tiers, call, perImage, webSearch, fileSearch, service } = price;
  const others = [...(service ?? [])].filter(([name]) => name !== 'standard');
  return [
    ratesText(rates),
    ...tiers.map((tier) => `above ${tier.above}: ${ratesText(tier.rates)}`),
    ...(call === undefined ? [] : [`call ${decimalText(call, 12)}`]),
    ...(perImage === undefined ? [] : [`per_image ${decimalText(perImage, 12)}`]),
    ...(webSearch === undefined ? [] : [`web_search ${decimalText(webSearch, 12)}`]),
    ...(fileSearch === undefined ? [] : [`file_search ${decimalText(fileSearch, 12)}`]),
    ...others.flatMap(([name, own]) => [
      `${name}: ${ratesText(own.rates)}`,
      ...own.tiers.map((tier) => `${name} above ${tier.above}: ${ratesText(tier.rates)}`),
    ]),
  ].join(', ');
}

function ratesText(rates: Rates): string {
  const named: readonly (readonly [string, number | undefined])[] = [
    ['input', rates.input],
    ...optionalRates.slice(0, 3).map(([name, member]) => [name, rates[member]] as const),
    ['output', rates.output],
    ...optionalRates.slice(3).map(([name, member]) => [name, rates[member]] as const),
  ];
  return named
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${ratePerMillion(value)}`]))
    .join(', ');
}
