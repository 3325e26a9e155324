// Forwards requests with a bearer token, for programs that cannot send a token: node bearer-relay.mjs URL TOKEN_FILE [HOST] prints the
// relay's URL.
// Host and Origin headers that name the relay are replaced with those of the server (HOST, by default the host of the URL). Other values
// are unchanged.
import { readFileSync } from 'node:fs';
import { request as ask, createServer } from 'node:http';

const [url, tokenFile, host = new URL(url).host] = process.argv.slice(2);
const bearer = `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`;

const server = createServer((incoming, outgoing) => {
  const own = `127.0.0.1:${server.address().port}`;
  const headers = { ...incoming.headers, authorization: bearer };
  if (headers.host === own) headers.host = host;
  if (headers.origin === `http://${own}`) headers.origin = `http://${host}`;
  const passed = ask(new URL(incoming.url, url), { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  passed.on('error', () => outgoing.destroy());
  outgoing.on('close', () => passed.destroy());
  incoming.pipe(passed);
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`));
