// The local service of a member as a process that can be stopped: service-program.mjs NAME PORT LOG
// The log gets a line when a POST begins and a line when its body is complete, both written before the response.
import { createHash } from 'node:crypto';
import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const [name, port, logFile] = process.argv.slice(2);
const log = openSync(logFile, 'a');
const note = (word, id, more = '') => writeSync(log, `${word} ${id} ${more}\n`);

async function takePost(request, response) {
  const id = request.headers['x-id'];
  note('begun', id);
  const hash = createHash('sha256');
  for await (const piece of request) hash.update(piece);
  const sum = hash.digest('hex');
  note('whole', id, sum);
  response.end(JSON.stringify({ id, sum, service: name }));
}

const answers = {
  '/healthz': (_, response) => response.end('well'),
  '/small': (_, response) => response.end('small'),
  /** A slow response, so that many requests are running when a member dies. */
  '/slow': async (_, response) => {
    await pause(5 + 25 * Math.random());
    response.end('slow');
  },
  /** A response that begins at once and then takes a while. */
  '/drip': async (_, response) => {
    response.writeHead(200, { 'content-length': 2000 });
    response.write(Buffer.alloc(1000, 'a'));
    await pause(5 + 15 * Math.random());
    response.end(Buffer.alloc(1000, 'b'));
  },
  '/take': takePost,
};

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const answer = answers[request.url];
  if (answer === undefined) response.writeHead(404).end();
  else void Promise.resolve(answer(request, response)).catch(() => response.destroy());
});
process.on('disconnect', () => process.exit());
server.listen(Number(port), '127.0.0.1', () => process.send({ type: 'listening' }));
