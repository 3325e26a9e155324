// Services that each interpret paths differently and respond with the part of the site: `admin`, `public` or `other`.
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, posix } from 'node:path';
import express from 'express';
import { throwAwayFolder } from '../../../../bench/lib/children.mjs';

const PARTS = ['admin', 'public'];

const partOf = (path) => PARTS.find((part) => path === `/${part}` || path.startsWith(`/${part}/`)) ?? 'other';
const pathOf = ({ url }) => url.split('?', 1)[0];

/** Makes a reader return `other` for a request that it cannot read. */
const guarded = (read) => (request) => {
  try {
    return read(request);
  } catch {
    return 'other';
  }
};

/** Reads paths like Tomcat and Spring: cuts off parameters of segments, then decodes, then normalizes. */
const cutting = guarded((request) => {
  const cut = pathOf(request)
    .split('/')
    .map((segment) => segment.split(';', 1)[0])
    .join('/');
  return partOf(posix.normalize(decodeURIComponent(cut)));
});

/** Reads paths in the other order: decodes, then cuts off parameters, and ignores case. */
const cuttingLate = guarded((request) => {
  const decoded = decodeURIComponent(pathOf(request)).toLowerCase();
  const cut = decoded.split('/').map((segment) => segment.split(';', 1)[0]);
  return partOf(posix.normalize(cut.join('/')));
});

/** Reads paths like many programs, relative to a base URL: `\` becomes `/`, `%2e` becomes `.`, and `//x` becomes a host. */
const byUrl = guarded((request) => partOf(decodeURIComponent(new URL(request.url, 'http://service.invalid').pathname)));

/** Reads paths in the same way after decoding once: `%2f` can produce a host, and line breaks are dropped. */
const byDecodedUrl = guarded((request) => {
  const decoded = decodeURIComponent(pathOf(request)).replaceAll('%', '%25');
  return partOf(new URL(decoded, 'http://service.invalid').pathname);
});

/** Normalizes paths and compares them without case, like regular expressions in Python. */
const byLetters = guarded((request) => {
  const text = posix.normalize(decodeURIComponent(pathOf(request))).normalize('NFKC');
  return partOf(text.replaceAll('\u0130', 'i').toUpperCase().toLowerCase());
});

/** Normalizes paths without decoding. */
const undecoded = guarded((request) => partOf(posix.normalize(pathOf(request))));

/** Reads real files below a real folder. On Windows, `\` separates folders and case is ignored. */
const files = (isWindows) => {
  const root = throwAwayFolder();
  for (const part of [...PARTS, 'other']) {
    mkdirSync(join(root, part), { recursive: true });
    writeFileSync(join(root, part, 'part'), part);
  }
  return guarded((request) => {
    const decoded = decodeURIComponent(pathOf(request));
    const path = posix.normalize(isWindows ? decoded.replaceAll('\\', '/').toLowerCase() : decoded);
    const [, folder = ''] = path.split('/');
    return folder === '' || folder === '..' ? 'other' : readFileSync(join(root, folder, 'part'), 'utf8');
  });
};

const answer = (response, part, target) => {
  const body = JSON.stringify({ part, target });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
};

/** Returns an Express app with the parts of the site as middleware. */
const expressApp = (seen) => {
  const app = express();
  for (const part of PARTS) app.use(`/${part}`, (request, response) => seen(request, response, part));
  app.use((request, response) => seen(request, response, 'other'));
  app.use((_error, request, response, _next) => seen(request, response, 'other'));
  return app;
};

const READERS = {
  cutting,
  'cutting-late': cuttingLate,
  url: byUrl,
  'decoded-url': byDecodedUrl,
  letters: byLetters,
  undecoded,
  files: files(false),
  'files-windows': files(true),
};

export const SERVICES = ['express', ...Object.keys(READERS)];

/** Starts a service. `visits` records each request with the part that the service chose. */
export async function startService(name) {
  const visits = [];
  const seen = (request, response, part) => {
    const target = request.originalUrl ?? request.url;
    visits.push({ part, target, auth: request.headers['x-tunnel-auth'] ?? null });
    answer(response, part, target);
  };
  const reader = READERS[name];
  const server = createServer(
    name === 'express' ? expressApp(seen) : (request, response) => seen(request, response, reader(request)),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { name, visits, port: server.address().port };
}
