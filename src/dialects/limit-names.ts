/** Names of the headers that tell where a limit stands. */

export interface LimitNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** Made once for each limit: every answer to a call with limits has them. */
export function limitNames(nameOf: (part: keyof LimitNames) => string): LimitNames {
  return { limit: nameOf('limit'), remaining: nameOf('remaining'), reset: nameOf('reset') };
}
