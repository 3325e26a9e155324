// Rows of small HTTP requests: through TCP tunnels, HTTP edges and HTTPS edges.
import { PEAK_MEMORY } from '../../scenarios/figures.mjs';
import { measureSmallRequests } from '../../scenarios/http.mjs';
import { isHttp, isHttps, isTcp, plainName } from './takes.mjs';

const VISITORS = 50;
const WARM_UP_RUNS = 3;

/** Selects edges that parse HTTP, and for comparison the cheapest tunnel that does not. */
const isHttpOrRathole = (path) => isHttp(path) || plainName(path) === 'rathole';

const requests = ({ keepAlive, ...row }) => ({
  ...row,
  rank: 'cpuPerRequestUs',
  needs: ['wrk'],
  figures: ['cpuPerRequestUs', 'edgeCpuPerRequestUs', 'requestsPerSecond', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  measure: (stage) => measureSmallRequests(stage, { connections: VISITORS, keepAlive, warmUpRuns: WARM_UP_RUNS }),
});

const KEPT = `small GETs on ${VISITORS} keep-alive connections`;
const ANEW = `a new connection per small GET, ${VISITORS} at a time`;

export const requestRows = [
  requests({
    name: 'tcp-keep-alive',
    title: `TCP tunnels: ${KEPT}`,
    keepAlive: true,
    takes: isTcp,
    yardstick: 'nginx',
    meaning: 'for example an API behind a TCP tunnel, or short database queries',
  }),
  requests({
    name: 'tcp-connect',
    title: `TCP tunnels: ${ANEW}`,
    keepAlive: false,
    takes: isTcp,
    yardstick: 'nginx',
    meaning: 'for example webhooks, health checks or clients without keep-alive',
  }),
  requests({
    name: 'http-keep-alive',
    title: `HTTP edges: ${KEPT}`,
    keepAlive: true,
    takes: isHttpOrRathole,
    yardstick: 'nginx-http',
    meaning: 'for example a page with 50 assets',
  }),
  requests({
    name: 'http-connect',
    title: `HTTP edges: ${ANEW}`,
    keepAlive: false,
    takes: isHttpOrRathole,
    yardstick: 'nginx-http',
    meaning: 'for example webhooks to a hostname, or first-time visitors',
  }),
  requests({
    name: 'https-keep-alive',
    title: `HTTPS visitors: ${KEPT}`,
    keepAlive: true,
    takes: isHttps,
    yardstick: 'bare-tls',
    meaning: 'a page with 50 assets over TLS, as browsers request it',
  }),
  requests({
    name: 'https-connect',
    title: `HTTPS visitors: ${ANEW}`,
    keepAlive: false,
    takes: isHttps,
    yardstick: 'bare-tls',
    meaning: 'a full TLS handshake per request: the cost of a first visit',
  }),
];
