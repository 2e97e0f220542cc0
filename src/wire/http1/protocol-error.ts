/** What an upstream sent is not HTTP/1.1 as the gateway reads it. */
export class ProtocolError extends Error {
  /** Whether the same request may well be answered properly the next time: broken on the way, not by nature. */
  readonly passing: boolean;

  constructor(message: string, { passing = true }: { readonly passing?: boolean } = {}) {
    super(message);
    this.passing = passing;
  }
}
