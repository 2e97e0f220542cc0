/**
 * The hosts of Bedrock that speak the APIs of OpenAI and Anthropic (Mantle): plain addresses by region, with the keys and
 * signatures of Bedrock (docs/operator/clouds.md).
 */
import type { CloudInput, CloudProblem } from '../../core/cloud.ts';
import { upstreamDialect } from '../../dialects/registry.ts';
import type { ProviderRow } from '../compatible.ts';
import { hostedModelTraits } from '../model-traits.ts';
import {
  accountProblems,
  auths,
  bearerKey,
  claudeBetas,
  credentialKeys,
  regionOf,
  signerOf,
} from './aws/account.ts';
import { awsErrorReader } from './aws/errors.ts';
import { isClaude, isModelId, listedAs, makersName } from './aws/models.ts';
import type { Cloud, ModelPlace } from './cloud.ts';
import { claudePrice, makerRow } from './declaration.ts';

/** The dialects of models other than Claude. */
const dialects: ReadonlySet<string> = new Set(['openai-chat', 'openai-responses']);

/**
 * Its row.
 * @param vendors the rows of the makers whose dialects and traits hold there
 */
export function mantleRow(vendors: readonly ProviderRow[]): ProviderRow {
  const maker = makerRow(vendors, 'anthropic');
  const own = { id: 'bedrock-mantle', telemetry: 'aws.bedrock', prices: 'aws' } as const;
  const claude: ProviderRow = {
    ...maker,
    ...own,
    traits: { ...maker.traits, dropsBillingHeader: true },
  };
  const row: ProviderRow = {
    ...own,
    dialect: 'openai-chat',
    baseUrl: 'https://bedrock-mantle.region.api.aws',
    // `openai.gpt-oss-120b`, `mistral.mistral-large-3`
    modelTraits: (model) => hostedModelTraits(model.slice(model.indexOf('.') + 1)),
  };
  return {
    ...row,
    cloud: {
      keys: [...credentialKeys, 'endpoint', 'deployments'],
      auth: [...auths],
      responses: true,
      problems: problemsOf,
      // A key and a region make the provider `bedrock`.
      appears: () => false,
      address: baseOf,
      key: bearerKey,
      tokens: () => undefined,
      signer: (input, credentials) => signerOf(input, credentials, 'bedrock-mantle'),
      listsModels: () => true,
      listedAs,
      priceOf: (_, model, price) => (isClaude(model) ? claudePrice(price) : price),
      mayHave: isModelId,
      modelOf: makersName,
      place: placeOf,
      rowOf: (dialect) => (dialect === 'anthropic-messages' ? claude : { ...row, dialect }),
    } satisfies Cloud,
  };
}

/** The address without the paths of the APIs. Some models are under `/openai` only. */
function baseOf(input: CloudInput): string | undefined {
  const region = regionOf(input);
  const address =
    input.declared.cloud.endpoint ?? (region && `https://bedrock-mantle.${region}.api.aws`);
  return address?.replace(/\/+$/, '');
}

function placeOf(input: CloudInput, _: string, model: string | undefined): ModelPlace {
  const base = baseOf(input) ?? '';
  const isResponses = input.declared.dialect === 'openai-responses';
  const dialect = isClaude(model ?? '')
    ? 'anthropic-messages'
    : isResponses
      ? 'openai-responses'
      : 'openai-chat';
  const answers = { readError: awsErrorReader(upstreamDialect(dialect).readError) };
  if (dialect === 'anthropic-messages') {
    return {
      dialect,
      answers,
      baseUrl: `${base.replace(/\/openai$/, '')}/anthropic`,
      keyHeader: 'authorization',
      forwarded: [
        { name: 'anthropic-version', otherwise: '2023-06-01' },
        { name: 'anthropic-beta', allowed: claudeBetas },
      ],
    };
  }
  return { dialect, answers, baseUrl: `${base}/v1` };
}

function problemsOf(input: CloudInput): readonly CloudProblem[] {
  const { dialect } = input.declared;
  const found = accountProblems(input);
  if (dialect === undefined || dialects.has(dialect)) return found;
  const message = 'must be openai-chat or openai-responses here';
  return [...found, { key: 'dialect', message }];
}
