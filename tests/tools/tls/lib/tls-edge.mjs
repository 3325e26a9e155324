// An edge that speaks TLS, and visitors of it.
import { get } from 'node:https';
import { throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { startEdge } from '../../groups/lib/edge.mjs';
import { makeCertificate } from '../../proxy/lib/stand.mjs';

const DOMAIN = 'tunnels.test';
const TIMEOUT_MS = 10_000;

/** An edge whose https port is `port`. Needs openssl. */
export async function openTlsEdge() {
  const tls = makeCertificate(throwAwayFolder(), 'edge', DOMAIN, `*.${DOMAIN}`);
  const edge = await startEdge({
    serverLines: `domain = "${DOMAIN}"`,
    tables: `[tls]\ncert_path = "${tls.cert}"\nkey_path = "${tls.key}"`,
  });
  return { edge, port: Number(new URL(edge.run.https_url).port) };
}

/** One visitor on a connection of its own, to a name that no tunnel has: its status, or the code of its error, and its time. */
export const visit = (port) =>
  new Promise((resolve) => {
    const begin = performance.now();
    const headers = { host: `nobody.${DOMAIN}` };
    const asked = { port, host: '127.0.0.1', servername: `nobody.${DOMAIN}`, headers, rejectUnauthorized: false };
    get({ ...asked, agent: false, timeout: TIMEOUT_MS }, (response) => {
      response.resume().on('end', () => resolve({ status: response.statusCode, ms: performance.now() - begin }));
    })
      .on('timeout', function end() {
        this.destroy();
      })
      .on('error', (error) => resolve({ status: error.code, ms: performance.now() - begin }));
  });

/** One visitor after the other. */
export async function visitOften(port, times) {
  const answers = [];
  for (let n = 0; n < times; n += 1) answers.push(await visit(port));
  return answers;
}

/** The time that this share of the answers took at most. */
export const timeAt = (answers, share) => {
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  return times[Math.min(times.length - 1, Math.floor(times.length * share))];
};
