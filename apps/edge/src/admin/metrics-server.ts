// /metrics for Prometheus, on a port of its own that is loopback by default; nothing else is here.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpListener, type ListenOn } from '@tunnel/http-shell';
import type { Logger } from '@tunnel/runtime';
import type { EdgeMetrics } from './edge-metrics.ts';
import { API_BOUNDS } from './rest-server.ts';

export class MetricsServer extends HttpListener {
  constructor(on: Omit<ListenOn, 'key'>, metrics: EdgeMetrics, logger: Logger) {
    super({
      on: { ...on, key: '[server] metrics_port' },
      onRequest: (request, response) => void answer(request, response, metrics, logger),
      bounds: API_BOUNDS,
      unreadable: (fault) => ({ headers: { 'content-type': 'text/plain' }, body: `${fault.message}\n` }),
    });
  }
}

const answer = async (
  request: IncomingMessage,
  response: ServerResponse,
  metrics: EdgeMetrics,
  logger: Logger,
): Promise<void> => {
  const isScrape = request.method === 'GET' || request.method === 'HEAD';
  if (!isScrape || request.url?.split('?')[0] !== '/metrics') {
    say(response, 404, 'nothing here; see /metrics\n');
    return;
  }
  try {
    say(response, 200, await metrics.text(), metrics.contentType);
  } catch (error) {
    logger.error({ err: error }, 'metrics could not be collected');
    say(response, 500, 'metrics could not be collected\n');
  }
};

const say = (response: ServerResponse, status: number, text: string, contentType = 'text/plain'): void => {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
};
