// A local service that answers every TCP connection or HTTP request with its name, and counts them.
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';

export async function startNamingService(protocol, name) {
  let count = 0;
  const server =
    protocol === 'tcp'
      ? createServer((socket) => {
          count += 1;
          socket.on('error', () => {});
          socket.end(name);
        })
      : createHttpServer((_, response) => {
          count += 1;
          response.end(name);
        });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    name,
    port: server.address().port,
    get count() {
      return count;
    },
    close: () => {
      server.close();
      server.closeAllConnections?.();
    },
  };
}
