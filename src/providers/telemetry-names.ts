/** What OpenTelemetry's GenAI conventions call a provider (`gen_ai.provider.name`). */

/** Where the conventions have another name than the config. */
const conventional: ReadonlyMap<string, string> = new Map([
  ['gemini', 'gcp.gemini'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
]);

/** A provider that the conventions do not know has its own name. */
export function telemetryName(providerId: string): string {
  return conventional.get(providerId) ?? providerId;
}
