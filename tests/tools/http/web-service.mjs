// The local service for curl, wrk, h2load and the browser.
// Usage: web-service.mjs PORT [RESOURCES]
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const [port, resources = '200'] = process.argv.slice(2);
const count = Number(resources);

/** Page that loads each resource with a separate tag and counts the loaded resources in its title. */
const page = `<!doctype html><title>loading</title><script>
let ok = 0, failed = 0;
const tell = () => { document.title = 'ok ' + ok + ', failed ' + failed; };
const good = () => { ok += 1; tell(); };
const bad = () => { failed += 1; tell(); };
</script>
${Array.from({ length: count }, (_, index) =>
  index % 2 === 0
    ? `<img src="/image/${index}.svg" onload="good()" onerror="bad()">`
    : `<script src="/script/${index}.js" async onload="good()" onerror="bad()"></script>`,
).join('\n')}
`;

const svg = (path) => `<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><title>${path}</title></svg>`;

const answers = {
  page: (_, response) => response.setHeader('content-type', 'text/html').end(page),
  image: (request, response) => response.setHeader('content-type', 'image/svg+xml').end(svg(request.url)),
  script: (_, response) => response.setHeader('content-type', 'text/javascript').end(`// ${'x'.repeat(20_000)}\n`),
  small: (_, response) => response.end('hello'),
  large: (_, response) => response.end(Buffer.alloc(1_000_000, 'x')),
  sum: async (request, response) => {
    const hash = createHash('sha256');
    for await (const piece of request) hash.update(piece);
    response.end(`${hash.digest('hex')}\n`);
  },
};

createServer((request, response) => {
  const name = (request.url ?? '').split('/')[1] ?? '';
  const answer = Object.hasOwn(answers, name) ? answers[name] : undefined;
  if (answer === undefined) response.writeHead(404).end();
  else void answer(request, response);
}).listen(Number(port), '127.0.0.1');
