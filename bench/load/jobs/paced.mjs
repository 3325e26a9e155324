// Requests at fixed times, regardless of earlier responses. Each is timed from its due time, so that a request that had to wait counts as
// slow.
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../../lib/statistics.mjs';

const WARM_UP_REQUESTS = 20;

/**
 * @param {{ method?: string, path: string, body?: object, status: number, orStatus?: number, perSecond: number, seconds: number }} parameters
 * `orStatus` is a status that is allowed but not counted
 */
export async function paced(address, parameters, ready) {
  const { perSecond, seconds } = parameters;
  const agent = new Agent({ keepAlive: true });
  let refused = 0;
  let problem = null;
  /** Sends a request. Never rejects, because other requests are in flight. */
  const ask = async (dueAt) => {
    try {
      if (!(await askOnce({ agent, address, ...parameters }))) refused += 1;
    } catch (error) {
      problem ??= error.message;
    }
    return performance.now() - dueAt;
  };
  for (let index = 0; index < WARM_UP_REQUESTS; index += 1) await ask(0);
  if (problem !== null) throw new Error(problem);
  refused = 0;
  await ready();
  const begunAt = performance.now();
  const asked = [];
  for (let index = 0; index < perSecond * seconds; index += 1) {
    const dueAt = begunAt + (index * 1000) / perSecond;
    const waitMs = dueAt - performance.now();
    if (waitMs > 0) await delay(waitMs);
    asked.push(ask(dueAt));
  }
  const took = (await Promise.all(asked)).sort((a, b) => a - b);
  agent.destroy();
  if (problem !== null) throw new Error(problem);
  return {
    requests: took.length - refused,
    seconds: (performance.now() - begunAt) / 1000,
    p50Ms: percentile(took, 0.5),
    p99Ms: percentile(took, 0.99),
  };
}

/** Resolves to true if the response has the wanted status, and to false for the alternative status. */
const askOnce = ({ agent, address: { host, port }, method = 'GET', path, body, status, orStatus = status }) =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = text === undefined ? {} : { 'content-type': 'application/json', 'content-length': text.length };
    const sent = request({ agent, host, port, method, path, headers }, (answer) => {
      answer.resume().on('end', () => {
        if ([status, orStatus].includes(answer.statusCode)) resolve(answer.statusCode === status);
        else reject(new Error(`${method} ${path} was answered with ${answer.statusCode}`));
      });
    });
    sent.on('error', reject);
    sent.end(text);
  });
