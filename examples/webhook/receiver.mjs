// Receives webhooks of GitHub at POST /hooks/github: checks the signature, responds at once, then does the work.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const PORT = Number(process.env.PORT ?? 3000);
const SECRET = process.env.WEBHOOK_SECRET ?? '';
/** GitHub sends at most 25 MB; most events need a few kilobytes. */
const MAX_BODY_BYTES = 1024 * 1024;

/** Reads the body as bytes, because the signature covers the bytes. Returns null if the body is too long. */
const readBody = async (request) => {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
};

const isSigned = (body, header = '') => {
  const expected = Buffer.from(`sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`);
  const given = Buffer.from(header);
  // The comparison takes the same time for every wrong signature, so that its time reveals nothing.
  return given.length === expected.length && timingSafeEqual(given, expected);
};

/** Your code. An error stays in this program, because GitHub already has the response. */
const handle = (event, payload) => {
  console.log(`${event}: ${payload.zen ?? payload.action ?? 'received'}`);
};

const receive = async (request) => {
  if (request.method !== 'POST' || request.url !== '/hooks/github') return [404];
  const body = await readBody(request);
  if (body === null) return [413];
  if (!isSigned(body, request.headers['x-hub-signature-256'])) return [401];
  try {
    const payload = JSON.parse(body);
    return [202, () => handle(request.headers['x-github-event'], payload)];
  } catch {
    return [400];
  }
};

const respond = async (request, response) => {
  try {
    const [status, work] = await receive(request);
    response.writeHead(status).end();
    work?.();
  } catch (error) {
    console.error(`webhook failed: ${error.message}`);
    response.destroy();
  }
};

if (SECRET === '') {
  console.error('WEBHOOK_SECRET is not set: set it to the secret of the webhook');
  process.exit(2);
}
createServer((request, response) => void respond(request, response)).listen(PORT, '127.0.0.1', () =>
  console.log(`waiting for webhooks on port ${PORT}`),
);
