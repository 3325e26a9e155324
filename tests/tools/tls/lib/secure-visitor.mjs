// One line to a TLS service and its answer, with the name of the certificate that it showed.
// usage: node secure-visitor.mjs PORT HOST CA [ALPN]
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

const [port, servername, ca, alpn] = process.argv.slice(2);
const options = {
  host: '127.0.0.1',
  port: Number(port),
  servername,
  ca: readFileSync(ca),
  ...(alpn ? { ALPNProtocols: [alpn] } : {}),
};
const socket = connect(options, () => socket.write('hello\n'));
socket.setTimeout(20_000, () => socket.destroy(new Error('nothing in 20 s')));
socket.on('data', (answer) => {
  process.stdout.write(`${socket.getPeerCertificate().subject.CN} ${answer}`);
  socket.end();
});
socket.on('error', (error) => {
  process.stdout.write(`${error.code ?? error.message}\n`);
  process.exitCode = 1;
});
