// Test of the metrics of an edge that carries HTTP, from a scrape and from the REST API.
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { askHttp, openHttp, startWeb, wholeBody } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

/** Returns the value of the metric series with exactly the given labels, in the order of the scrape. */
const seriesOf = async (stack: Stack, series: string): Promise<number> => {
  const text = await (await fetch(stack.run.metrics_url)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  if (line === undefined) throw new Error(`no ${series}`);
  return Number(line.slice(series.length + 1));
};

describe('metrics of HTTP tunnels', () => {
  it('count requests, responses by class, bytes in both directions, and durations', async ({ harness }) => {
    const web = harness.use(
      await startWeb(async (request, response) => {
        const body = await wholeBody(request);
        response.statusCode = Number(request.url?.slice(1)) || 200;
        response.end(body);
      }),
    );
    const stack = await harness.stack();
    const region = 'region="local"';
    expect(await seriesOf(stack, `tunnel_http_responses_total{class="2xx",${region}}`)).toBe(0);
    const { ready, endpoint } = await openHttp(harness, stack, web.port);
    expect(await stack.metric('tunnel_active_tunnels_http')).toBe(1);
    for (const status of ['200', '201', '404', '503']) {
      await askHttp(endpoint, { method: 'POST', path: `/${status}`, body: Buffer.alloc(10_000, 'x') });
    }
    // A request to an unknown name, answered by the edge without a tunnel.
    await askHttp({ ...endpoint, host: 'nobody.localhost' });
    const responses = ['2xx', '4xx', '5xx'].map((name) =>
      seriesOf(stack, `tunnel_http_responses_total{class="${name}",${region}}`),
    );
    expect(await Promise.all(responses)).toEqual([2, 2, 1]);
    expect(await seriesOf(stack, `tunnel_requests_total{protocol="http",${region}}`)).toBe(4);
    for (const direction of ['in', 'out']) {
      const bytes = await seriesOf(
        stack,
        `tunnel_bytes_proxied_total{protocol="http",${region},direction="${direction}"}`,
      );
      expect(bytes).toBeGreaterThan(40_000);
      expect(bytes).toBeLessThan(43_000);
    }
    expect(await seriesOf(stack, `tunnel_http_duration_seconds_count{${region}}`)).toBe(5);
    // The transfer time of a body counts as the visitor's, so the edge measures its own share only for requests without a body.
    const edgeShares = `tunnel_http_edge_seconds_count{${region}}`;
    const before = await seriesOf(stack, edgeShares);
    await askHttp(endpoint);
    expect(await seriesOf(stack, edgeShares)).toBe(before + 1);
    const row = await stack.tunnel(ready.tunnel_id);
    expect(row).toMatchObject({ request_count: 5 });
    expect(row?.bytes_proxied).toBeGreaterThan(80_000);
    await eventually(async () => expect(await stack.metric('tunnel_active_connections')).toBe(0));
  });
});
