// WebSockets with a token, and without one. Usage: socket-guest.mjs serve PORT · socket-guest.mjs visit URL TOKEN_FILE
// The service echoes with the name of whoever was let in; a visit prints `NAME ok` or `NAME what went wrong`.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { WebSocket, WebSocketServer } from 'ws';

const [role, where = '', tokenFile = ''] = process.argv.slice(2);

const serve = () => {
  const server = new WebSocketServer({ port: Number(where), host: '127.0.0.1' });
  server.on('connection', (socket, { headers }) => {
    const { 'x-tunnel-user': user = 'nobody', 'x-tunnel-token': token } = headers;
    const name = Buffer.from(`${token === undefined ? user : 'a token got through'}: `);
    socket.on('message', (data) => socket.send(Buffer.concat([name, data])));
  });
};

const dial = (headers) => {
  const { host, port } = new URL(where);
  return new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host, ...headers } });
};

const letIn = async (token) => {
  const socket = dial({ 'x-tunnel-token': token });
  await once(socket, 'open');
  socket.send('hello');
  const [heard] = await once(socket, 'message');
  socket.terminate();
  const said = heard.toString('utf8');
  return /^(?!nobody|a token)\S+: hello$/.test(said) ? null : said;
};

const turnedAway = async (headers) => {
  const socket = dial(headers);
  socket.on('error', () => {});
  const [, response] = await once(socket, 'unexpected-response');
  socket.terminate();
  return response.statusCode === 401 ? null : `status ${response.statusCode}`;
};

const visit = async () => {
  const token = readFileSync(tokenFile, 'utf8').trim();
  const tries = {
    'a token lets it in, and the service hears who it is': () => letIn(token),
    'without one it is told 401': () => turnedAway({}),
    'with another one, too': () => turnedAway({ 'x-tunnel-token': 'another-token-of-some-length' }),
  };
  for (const [name, attempt] of Object.entries(tries)) {
    const wrong = await attempt().catch((error) => error.message);
    console.log(`${name} ${wrong ?? 'ok'}`);
  }
};

if (role === 'serve') serve();
else await visit();
