import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { listenOrFault } from './listen-or-fault.ts';

it('a connection that cannot be accepted later, as when no descriptors are left, does not end the process', async () => {
  const server = createServer();
  await listenOrFault(server, { host: '127.0.0.1', port: 0, key: '[server] api_port' });
  try {
    expect(() => server.emit('error', new Error('accept ENFILE'))).not.toThrow();
    expect(server.listening).toBe(true);
  } finally {
    server.close();
  }
});
