// A local web service with switchable health: it answers every request with 200 or 503.
import { once } from 'node:events';
import { createServer } from 'node:http';

export async function startFlappingService() {
  const service = { isWell: true, port: 0, probes: 0, close: () => server.close() };
  const server = createServer((_, response) => {
    service.probes += 1;
    response.writeHead(service.isWell ? 200 : 503).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  service.port = server.address().port;
  return service;
}
