// The lower bound of https: node:tls with nothing behind it, with the same certificate and the same response bytes as the other paths.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { serveHttp } from '../load/http-service.mjs';
import { CERTIFICATE, KEY } from '../paths/certificate.mjs';

const [, , portFile] = process.argv;
const keys = { cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) };

const server = createServer({ ...keys, noDelay: true }, (socket) => {
  socket.on('error', () => {});
  socket.on('data', serveHttp(socket));
});
server.on('tlsClientError', () => {});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  writeFileSync(portFile, String(server.address().port)),
);
