/** What measuring a refusal takes without a gateway: a bare node:http server that refuses all, as the gateway's core does. */
import { createServer } from 'node:http';

const body = JSON.stringify({
  type: 'error',
  error: { type: 'overloaded_error', message: 'The gateway is at its limit of concurrent calls.' },
});

const server = createServer((request, response) => {
  request.resume();
  response.writeHead(529, [
    'retry-after',
    '5',
    'content-type',
    'application/json',
    'content-length',
    String(body.length),
  ]);
  response.end(body);
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
