/** The client's side of a call, as the gateway sees it; the server implements it over a socket. */
export interface ClientSink {
  /** Sends status and headers (flat name, value, …). Once. */
  start(status: number, headers: readonly string[]): void;
  /** Sends bytes. False = the socket is full: stop until `drained` is called. */
  write(bytes: Buffer | string): boolean;
  /** Ends the answer properly, with the last bytes if any. */
  end(bytes?: Buffer | string): void;
  /** Cuts the connection: the client must see a broken answer, not an ended one. */
  cut(): void;
  /**
   * Called when the client left before `end`, and when a full socket has room again.
   * @param stalledMs how long the client may take none of the last bytes, once `end` was called (G9).
   */
  observe(observer: ClientObserver, stalledMs?: number): void;
}

export interface ClientObserver {
  left(): void;
  drained(): void;
}
