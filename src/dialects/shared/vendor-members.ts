/**
 * Members outside both APIs that the gateway reads in every dialect: they name other models or have a price
 * (`gateway/call-size.ts`), or are read as part of the prompt.
 */
import { openFields, whole, wholes } from '../../core/shape.ts';

/** What names models: texts, objects with `model`, or objects whose first key is one. */
const models = openFields(wholes('model'));

/** The members of tools that ask other models or have a price. */
export const pricedTool = {
  ...wholes('type', 'model', 'models', 'analysis_models', 'max_uses'),
  parameters: models,
};

export const vendorMembers = {
  fallbacks: models,
  models,
  preset: models,
  plugins: openFields({
    ...wholes('id', 'enabled', 'max_results', 'models', 'analysis_models', 'model'),
    parameters: models,
  }),
  route: whole,
  provider: openFields(wholes('order', 'only', 'ignore', 'sort', 'quantizations')),
  speed: whole,
  service_tier: whole,
  system: whole,
  output_config: whole,
  functions: whole,
  response_format: whole,
  web_search_options: whole,
  search_parameters: openFields(wholes('mode', 'max_search_results')),
  enable_search: whole,
  prediction: whole,
  modalities: whole,
  mcp_servers: whole,
  inference_geo: whole,
  context_management: openFields({ edits: openFields(wholes('type')) }),
  metadata: whole,
  user: whole,
  safety_identifier: whole,
} as const;
