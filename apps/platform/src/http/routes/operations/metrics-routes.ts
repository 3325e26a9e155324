// The metrics over HTTP, for the operator: with the admin token, because behind a proxy everybody comes from this machine; and to the edge of the
// same stack, which shows them beside its own.
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

/** Below the link: after what checks the credential of edges. */
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
