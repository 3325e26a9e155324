// A TLS service that says who it is and whom it sees: `service NAME, client SUBJECT, host SNI, group GROUP`, one line for each line.
// usage: node secure-service.mjs PORT CERT KEY [CA_OF_CLIENTS]
import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';

const [port, cert, key, ca] = process.argv.slice(2);
const asksForOne = ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true, ca: readFileSync(ca) };

createServer(
  {
    cert: readFileSync(cert),
    key: readFileSync(key),
    ALPNProtocols: ['acme-tls/1', 'postgresql', 'http/1.1', 'h2'],
    ...asksForOne,
  },
  (socket) => {
    socket.on('error', () => {});
    const client = socket.getPeerCertificate().subject?.CN ?? 'nobody';
    socket.on('data', () =>
      socket.write(
        `seen client=${client} host=${socket.servername} alpn=${socket.alpnProtocol} ${socket.getProtocol()}\n`,
      ),
    );
  },
).listen(Number(port), '127.0.0.1');
