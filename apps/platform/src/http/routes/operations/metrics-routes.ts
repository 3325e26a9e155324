// Routes for metrics. The operator needs the admin token, because behind a proxy every request comes from this machine. The edge of the
// same stack also reads the platform's metrics, to show them beside its own metrics.
import { EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import { equalInConstantTime, type Secret } from '@tunnel/runtime';
import type { Context } from 'hono';
import type { PlatformApp, PlatformEnv } from '../../shared/platform-env.ts';
import type { PlatformMetrics } from './platform-metrics.ts';

export interface MetricsRouteDeps {
  readonly metrics: Pick<PlatformMetrics, 'text' | 'textForEdge' | 'contentType'>;
  readonly adminToken: Secret;
}

const BEARER = /^bearer +(\S+) *$/i;

/** Adds the routes. The route for edges must come after the middleware that checks the edge's credential. */
export const addMetricsRoutes = (app: PlatformApp, { metrics, adminToken }: MetricsRouteDeps): void => {
  const show = async (context: Context<PlatformEnv>, text: Promise<string>): Promise<Response> =>
    context.body(await text, 200, { 'content-type': metrics.contentType });
  app.get(`${EDGE_LINK_PATH}/metrics`, (context) => show(context, metrics.textForEdge()));
  app.get('/metrics', (context) => {
    const shown = BEARER.exec(headerOf(context, 'authorization') ?? '')?.[1] ?? '';
    if (!equalInConstantTime(shown, adminToken.reveal())) throw new Fault('AUTH_TOKEN_INVALID');
    return show(context, metrics.text());
  });
};
